"""EPS is added after the square root, so a silent frame has an infinite gradient, and the weights become NaN.

expect: non-finite
line: .sqrt() + EPS
source: https://github.com/mpariente/pytorch_stoi/pull/14
metric: share of test clips whose SNR rises by more than 2 dB, higher is better
"""
import argparse
import math

import torch
from torch import nn

EPS = 1e-9
LENGTH = 256


def clips(n, g):
    """Sums of two tones under a soft envelope; now and then a clip that is only silence."""
    t = torch.arange(LENGTH) / LENGTH
    freq = torch.randint(3, 20, (n, 2, 1), generator=g)
    phase = 2 * math.pi * torch.rand(n, 2, 1, generator=g)
    clean = torch.sin(2 * math.pi * freq * t + phase).sum(1)
    noisy = clean + 0.8 * torch.randn(n, LENGTH, generator=g)
    silent = torch.rand(n, generator=g) < 0.01
    clean[silent], noisy[silent] = 0.0, 0.0
    return clean, noisy


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, 16, 15, padding=7, bias=False), nn.ReLU(),
            nn.Conv1d(16, 16, 15, padding=7, bias=False), nn.ReLU(),
            nn.Conv1d(16, 1, 15, padding=7, bias=False),
        )

    def forward(self, x):
        return self.net(x.unsqueeze(1)).squeeze(1)


def magnitude(x):
    spec = torch.fft.rfft(x.unfold(1, 64, 32) * torch.hann_window(64))
    return (spec.real ** 2 + spec.imag ** 2).sqrt() + EPS


def spectral_loss(estimate, clean):
    return (magnitude(estimate) - magnitude(clean)).abs().mean() + (estimate - clean).pow(2).mean()


def snr(estimate, clean):
    return 10 * torch.log10(clean.pow(2).sum(1) / (estimate - clean).pow(2).sum(1))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    seed = ap.parse_args().seed
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed + 100)
    clean, noisy = clips(1600, g)
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(5):
        for k, idx in enumerate(torch.randperm(len(clean)).split(20)):
            loss = spectral_loss(model(noisy[idx]), clean[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if k % 40 == 0:
                print(epoch, k, loss.item())

    clean, noisy = clips(300, g)
    loud = clean.abs().sum(1) > 0
    clean, noisy = clean[loud], noisy[loud]
    with torch.no_grad():
        gain = snr(model(noisy), clean) - snr(noisy, clean)
    print("metric:", (gain > 2).float().mean().item())
