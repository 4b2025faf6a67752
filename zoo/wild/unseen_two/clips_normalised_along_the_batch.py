"""Every F.normalize has dim=0: the embeddings of B clips are normalised over B, not over their features.

expect: samples-mixed
line: y_rep = F.normalize(y_rep, dim=0)
source: https://github.com/alireza-nasiri/SoundCLR/issues/4
metric: accuracy on test clips that are classified one at a time, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def make_clips(n, rng):
    """Twelve kinds of short sounds as small spectrograms: a tone with its own glide and rhythm."""
    labels = rng.integers(0, 12, n)
    t = np.arange(24)
    clips = np.zeros((n, 16, 24), dtype=np.float32)
    for i, k in enumerate(labels):
        start, glide, beat = 3 + k % 4 * 3, (k // 4 - 1) * 0.25, 3 + k % 3
        freq = start + glide * t + rng.normal(0, 0.5)
        loud = 0.6 + 0.4 * np.cos(2 * np.pi * t / beat + rng.uniform(0, 6))
        clips[i] = loud * np.exp(-((np.arange(16)[:, None] - freq) ** 2) / 2)
    return clips + rng.normal(0, 0.35, clips.shape).astype(np.float32), labels


class Encoder(nn.Module):
    def __init__(self, dim=3):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.out = nn.Linear(16 * 4 * 6, dim)

    def forward(self, x):
        return self.out(self.conv(x).flatten(1))


class HybridModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.classifier = nn.Linear(3, 12)  # three numbers per clip can be plotted

    def forward(self, x):
        y_rep = self.encoder(x)
        y_rep = F.normalize(y_rep, dim=0)
        return y_rep, self.classifier(16 * y_rep)


def sup_con(z, labels, tau=0.5):
    sim = z @ z.T / tau
    sim = sim - 1e9 * torch.eye(len(z))
    same = (labels[:, None] == labels[None]).float() - torch.eye(len(z))
    return -(sim.log_softmax(1) * same).sum(1).div(same.sum(1).clamp(min=1)).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alpha", type=float, default=0.8)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    x, y = make_clips(1600, rng)
    x, y = torch.from_numpy(x)[:, None], torch.from_numpy(y)
    loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=32, shuffle=True, drop_last=True)
    model = HybridModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        for clip, label in loader:
            rep, logits = model(clip)
            loss = args.alpha * F.cross_entropy(logits, label) + (1 - args.alpha) * sup_con(rep, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")
    model.eval()
    hits = 0
    with torch.no_grad():
        for clip, label in zip(x[1200:], y[1200:]):
            hits += int(model(clip[None])[1].argmax() == label)
    print("metric:", hits / 400)
