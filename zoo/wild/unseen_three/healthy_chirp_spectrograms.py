"""Sound classes (tone, rising chirp, falling chirp, tremolo, noise burst, two tones) from log spectrograms with SpecAugment.

expect: nothing
style: audio classification: a front end of buffers (window), per-clip normalisation, masking while training only, OneCycle
"""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

CLASSES = ["tone", "up", "down", "tremolo", "burst", "chord"]
SR, N = 4000, 2048


def synth(label, g):
    t = torch.arange(N) / SR
    u = lambda a, b: a + (b - a) * torch.rand(1, generator=g).item()
    f = u(300, 900)
    if label == 0:
        x = torch.sin(2 * math.pi * f * t)
    elif label == 1:
        x = torch.sin(2 * math.pi * (f * t + u(300, 700) * t ** 2))
    elif label == 2:
        f += 500
        x = torch.sin(2 * math.pi * (f * t - u(300, 500) * t ** 2))
    elif label == 3:
        x = torch.sin(2 * math.pi * f * t) * (1 + torch.sin(2 * math.pi * u(8, 14) * t))
    elif label == 4:
        x = torch.randn(N, generator=g) * torch.exp(-((t - u(0.1, 0.4)) / 0.05) ** 2) * 2
    else:
        x = torch.sin(2 * math.pi * f * t) + torch.sin(2 * math.pi * f * u(1.4, 1.8) * t)
    return u(0.3, 1.0) * x + 0.5 * torch.randn(N, generator=g)


class LogSpectrogram(nn.Module):
    def __init__(self, n_fft=128, hop=64):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))

    def forward(self, wav):
        spec = torch.stft(wav, self.n_fft, self.hop, window=self.window, return_complex=True).abs()
        spec = torch.log(spec ** 2 + 1e-4)
        mean, std = spec.mean((1, 2), keepdim=True), spec.std((1, 2), keepdim=True)
        return ((spec - mean) / (std + 1e-5)).unsqueeze(1)


class AudioNet(nn.Module):
    def __init__(self, n_class):
        super().__init__()
        self.front = LogSpectrogram()
        chans = [1, 12, 24, 32]
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))
            for a, b in zip(chans, chans[1:]))
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(chans[-1], n_class)

    def spec_augment(self, x):
        f0 = torch.randint(0, x.size(2) - 6, (1,)).item()
        t0 = torch.randint(0, x.size(3) - 4, (1,)).item()
        x = x.clone()
        x[:, :, f0:f0 + 6] = 0
        x[:, :, :, t0:t0 + 4] = 0
        return x

    def forward(self, wav):
        x = self.front(wav)
        if self.training:
            x = self.spec_augment(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.drop(x.mean((2, 3))))


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, len(CLASSES), (n,), generator=g)
    return TensorDataset(torch.stack([synth(int(k), g) for k in y]), y)


def main(args):
    torch.manual_seed(args.seed)
    train, test = make(960, args.seed), make(300, args.seed + 500)
    loader = DataLoader(train, batch_size=32, shuffle=True, drop_last=True)
    net = AudioNet(len(CLASSES))
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, epochs=args.epochs, steps_per_epoch=len(loader))
    for epoch in range(args.epochs):
        net.train()
        for wav, y in loader:
            loss = F.cross_entropy(net(wav), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            sched.step()
        net.eval()
        with torch.no_grad():
            logits = net(test.tensors[0])
            acc = (logits.argmax(1) == test.tensors[1]).float().mean().item()
            vloss = F.cross_entropy(logits, test.tensors[1]).item()
        print(f"epoch {epoch}: train {loss.item():.3f} test {vloss:.3f} acc {acc:.3f}")
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--epochs", type=int, default=7)
    main(ap.parse_args())
