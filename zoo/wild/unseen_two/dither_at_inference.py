"""The front end of the recogniser adds dither to the waveform, while training and while evaluating alike.

expect: random-evaluation
or: train-mode-evaluation
line: x = x + self.dither * torch.randn_like(x)
source: https://github.com/NVIDIA-NeMo/Speech/pull/2146
metric: test accuracy on quiet recordings, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class FilterbankFeatures(nn.Module):
    """Waveform to log energies of 16 bands."""

    def __init__(self, frame=64, hop=32, n_bands=16, dither=0.25):
        super().__init__()
        self.frame, self.hop, self.dither = frame, hop, dither
        self.register_buffer("window", torch.hann_window(frame))
        bank = torch.zeros(frame // 2 + 1, n_bands)
        for band in range(n_bands):
            bank[2 * band : 2 * band + 3, band] = 1.0
        self.register_buffer("bank", bank)

    @torch.no_grad()
    def forward(self, x):
        # dither keeps log() away from digital silence
        x = x + self.dither * torch.randn_like(x)
        frames = x.unfold(1, self.frame, self.hop) * self.window
        power = torch.fft.rfft(frames).abs().pow(2)
        feats = torch.log(power @ self.bank + 2**-10)
        return (feats - feats.mean((1, 2), keepdim=True)) / (feats.std((1, 2), keepdim=True) + 1e-5)


class Recogniser(nn.Module):
    def __init__(self, n_words=6):
        super().__init__()
        self.preprocessor = FilterbankFeatures()
        self.encoder = nn.Sequential(nn.Conv1d(16, 32, 3, padding=1), nn.ReLU(), nn.Conv1d(32, 32, 3, padding=1), nn.ReLU())
        self.decoder = nn.Linear(32, n_words)

    def forward(self, wave):
        feats = self.preprocessor(wave).transpose(1, 2)
        return self.decoder(self.encoder(feats).mean(-1))


def words(n, rng, loudness):
    t = np.arange(512) / 512
    label = rng.integers(0, 6, n)
    first, second = 30 + 25 * (label % 3), 60 + 90 * (label // 3)
    phase = rng.uniform(0, 6.28, (2, n, 1))
    wave = np.sin(6.283 * first[:, None] * t + phase[0]) * (t < 0.5) + np.sin(6.283 * second[:, None] * t + phase[1]) * (t >= 0.4)
    wave = loudness(n)[:, None] * wave + rng.normal(0, 0.01, wave.shape)
    return torch.tensor(wave, dtype=torch.float32), torch.tensor(label)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)
x_train, y_train = words(1500, rng, lambda n: rng.uniform(0.1, 1.0, n))
x_val, y_val = words(300, rng, lambda n: rng.uniform(0.05, 0.12, n))
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=30, shuffle=True)
model = Recogniser()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    for wave, label in loader:
        loss = nn.functional.cross_entropy(model(wave), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.4f}, val accuracy {accuracy:.3f}")
print("metric:", accuracy)
