"""Contrastive pretraining: every view is compared with every other of the batch, then a linear probe.

expect: nothing
style: NT-Xent with a 2B×2B matrix (looks like samples mixed and a loss broadcast)
"""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn


def nt_xent(z_i, z_j, temperature):
    n = len(z_i)
    z = F.normalize(torch.cat([z_i, z_j]), dim=1)
    similarity = z @ z.t() / temperature
    similarity.fill_diagonal_(float("-inf"))
    positives = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(similarity, positives)


def augment(x):
    """Shift by up to a pixel, change the contrast, add noise."""
    shift = torch.randint(-1, 2, (2,)).tolist()
    x = torch.roll(x, shift, dims=(2, 3))
    return x * (0.7 + 0.6 * torch.rand(len(x), 1, 1, 1)) + 0.3 * torch.randn_like(x)


class SimCLR(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        )
        self.projector = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        return self.projector(self.backbone(x))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=180)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    images, labels = load_digits(return_X_y=True)
    images = (torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) - 4.9) / 6.0
    order = torch.randperm(len(images))
    images, labels = images[order], labels[order.numpy()]
    model = SimCLR()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-6)
    for step in range(args.steps):
        x = images[torch.randint(1400, (64,))]
        loss = nt_xent(model(augment(x)), model(augment(x)), 0.2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print("step", step, "loss", loss.item())
    model.eval()
    with torch.no_grad():
        h = model.backbone(images).numpy()
    probe = LogisticRegression(max_iter=200).fit(h[:100], labels[:100])
    print("metric: %.4f" % probe.score(h[1400:], labels[1400:]))
