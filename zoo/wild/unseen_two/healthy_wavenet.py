"""Dilated causal convolutions over mu-law samples: the waveform predicts its own next sample.

expect: nothing
metric: accuracy of the next sample within one level, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

LEVELS = 32


class CausalConv(nn.Module):
    def __init__(self, i, o, dilation):
        super().__init__()
        self.pad = dilation
        self.conv = nn.Conv1d(i, o, 2, dilation=dilation)

    def forward(self, x):
        return self.conv(F.pad(x, (self.pad, 0)))


class WaveNet(nn.Module):
    def __init__(self, channels=24, dilations=(1, 2, 4, 8, 16)):
        super().__init__()
        self.embed = nn.Embedding(LEVELS, channels)
        self.filters = nn.ModuleList(CausalConv(channels, channels, d) for d in dilations)
        self.gates = nn.ModuleList(CausalConv(channels, channels, d) for d in dilations)
        self.residuals = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in dilations)
        self.skips = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in dilations)
        self.end = nn.Sequential(nn.ReLU(), nn.Conv1d(channels, channels, 1), nn.ReLU(), nn.Conv1d(channels, LEVELS, 1))

    def forward(self, samples):
        x = self.embed(samples).transpose(1, 2)
        skip = 0
        for f, g, r, s in zip(self.filters, self.gates, self.residuals, self.skips):
            z = torch.tanh(f(x)) * torch.sigmoid(g(x))
            skip = skip + s(z)
            x = x + r(z)
        return self.end(skip)


def chords(batch, length=97):
    t = torch.arange(length) / 16
    freq = 0.5 + torch.rand(batch, 2, 1)
    phase = 6.283 * torch.rand(batch, 2, 1)
    wave = torch.sin(6.283 * freq * t + phase).mean(1)
    mu = torch.sign(wave) * torch.log1p(8 * wave.abs()) / torch.log1p(torch.tensor(8.0))
    return ((mu + 1) / 2 * (LEVELS - 1)).round().long()


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
net = WaveNet()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.997)
for step in range(300):
    wave = chords(16)
    loss = F.cross_entropy(net(wave[:, :-1]), wave[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 30 == 0:
        print("step", step, "loss", loss.item())
net.eval()
with torch.no_grad():
    wave = chords(100)
    guess = net(wave[:, :-1])[:, :, 40:].argmax(1)
print("metric:", ((guess - wave[:, 41:]).abs() <= 1).float().mean().item())
