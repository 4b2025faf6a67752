"""Noise2Noise: a denoiser learns from pairs of two noisy shots of the same scene and never sees a clean one.

expect: nothing
style: invites 'not learning' and 'loss does not fall': the loss has the variance of the target's noise as its floor, so it looks stuck high while the denoiser is good
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SIGMA = 0.8


class NoisyPairs(Dataset):
    """Signals of a few sines and steps; every access draws new noise twice."""

    def __init__(self, n, length=128, seed=0):
        rng = np.random.default_rng(seed)
        t = np.linspace(0, 1, length)
        clean = []
        for _ in range(n):
            s = sum(rng.uniform(0.3, 1) * np.sin(2 * np.pi * (rng.uniform(1, 6) * t + rng.random())) for _ in range(2))
            s = s + rng.uniform(-1, 1) * (t > rng.uniform(0.2, 0.8))
            clean.append(s)
        self.clean = torch.tensor(np.array(clean), dtype=torch.float32)[:, None]

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        c = self.clean[i]
        return c + SIGMA * torch.randn_like(c), c + SIGMA * torch.randn_like(c)


class DnCNN1d(nn.Module):
    def __init__(self, width=24, depth=4):
        super().__init__()
        layers = [nn.Conv1d(1, width, 9, padding=4), nn.ReLU()]
        for i in range(depth):
            layers += [nn.Conv1d(width, width, 5, padding=2 * 2 ** i, dilation=2 ** i, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
        layers += [nn.Conv1d(width, 1, 5, padding=2)]
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return x - self.body(x)


def psnr(a, b):
    return -10 * torch.log10(((a - b) ** 2).mean()).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    loader = DataLoader(NoisyPairs(1600, seed=args.seed), batch_size=32, shuffle=True)
    test_clean = NoisyPairs(200, seed=args.seed + 77).clean
    test_noisy = test_clean + SIGMA * torch.randn_like(test_clean)

    model = DnCNN1d()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.75)
    for epoch in range(args.epochs):
        model.train()
        meter = 0.0
        for shot_a, shot_b in loader:
            loss = nn.functional.mse_loss(model(shot_a), shot_b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter += loss.item() / len(loader)
        scheduler.step()
        model.eval()
        with torch.no_grad():
            p = psnr(model(test_noisy), test_clean)
        print(f"epoch {epoch} pair loss {meter:.4f} (floor {SIGMA ** 2:.2f})  PSNR {p:.2f} dB")
    print(f"noisy input {psnr(test_noisy, test_clean):.2f} dB")
    print(f"metric: {p:.3f}")


if __name__ == "__main__":
    main()
