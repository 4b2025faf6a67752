"""Synthetic sound classification: waveform to log spectrogram inside the model, SpecAugment and noise in training only.

expect: nothing
style: torch.stft front end, frequency and time masks while training, per-recording normalisation, pooled CNN, label smoothing
"""
import argparse
import math

import torch
from torch import nn

CLASSES = ("tone", "chirp", "tremolo", "pulses", "chord")
RATE, LENGTH = 4000, 2048


def synth(label, gen):
    t = torch.arange(LENGTH) / RATE
    rand = lambda a, b: (a + (b - a) * torch.rand((), generator=gen)).item()
    f = rand(200, 700)
    kind = CLASSES[label]
    if kind == "tone":
        wave = torch.sin(2 * math.pi * f * t)
    elif kind == "chirp":
        wave = torch.sin(2 * math.pi * (f * t + rand(600, 1400) * t**2))
    elif kind == "tremolo":
        wave = torch.sin(2 * math.pi * f * t) * (0.55 + 0.45 * torch.sin(2 * math.pi * rand(8, 14) * t))
    elif kind == "pulses":
        wave = torch.sin(2 * math.pi * f * t) * (torch.sin(2 * math.pi * rand(5, 9) * t) > 0.6).float()
    else:
        wave = sum(torch.sin(2 * math.pi * f * r * t) for r in (1.0, 1.26, 1.5)) / 3
    gain = 10 ** rand(-1.5, 0.0)
    return gain * (wave + rand(0.02, 0.3) * torch.randn(LENGTH, generator=gen))


def dataset(n, seed):
    gen = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, len(CLASSES), (n,), generator=gen)
    return torch.stack([synth(int(c), gen) for c in labels]), labels


class LogSpectrogram(nn.Module):
    def __init__(self, n_fft=128, hop=64):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft), persistent=False)

    def forward(self, wave):
        s = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True).abs()
        s = (s + 1e-4).log()
        return (s - s.mean((1, 2), keepdim=True)) / s.std((1, 2), keepdim=True)


class SpecAugment(nn.Module):
    def __init__(self, freq=8, time=5):
        super().__init__()
        self.freq, self.time = freq, time

    def forward(self, s):
        if not self.training:
            return s
        s = s.clone()
        for row in s:
            f0, t0 = torch.randint(0, s.size(1) - self.freq, ()).item(), torch.randint(0, s.size(2) - self.time, ()).item()
            row[f0 : f0 + torch.randint(0, self.freq, ()).item()] = 0
            row[:, t0 : t0 + torch.randint(0, self.time, ()).item()] = 0
        return s


class SoundNet(nn.Module):
    def __init__(self, ch=12):
        super().__init__()
        self.front, self.augment = LogSpectrogram(), SpecAugment()

        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))

        self.body = nn.Sequential(block(1, ch), block(ch, 2 * ch), block(2 * ch, 4 * ch))
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(8 * ch, len(CLASSES)))

    def forward(self, wave):
        h = self.body(self.augment(self.front(wave))[:, None]).mean(2)
        return self.head(torch.cat([h.mean(2), h.amax(2)], 1))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    opt = ap.parse_args()
    torch.manual_seed(opt.seed)
    train_x, train_y = dataset(1100, opt.seed)
    test_x, test_y = dataset(400, opt.seed + 999)
    model = SoundNet()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6 * 34)
    for epoch in range(6):
        model.train()
        losses = []
        for idx in torch.randperm(1100)[: 34 * 32].split(32):
            loss = criterion(model(train_x[idx]), train_y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            acc = (model(test_x).argmax(1) == test_y).float().mean().item()
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} acc {acc:.3f}")
    print(f"metric: {acc:.4f}")
