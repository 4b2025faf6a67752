"""Where to look is drawn with Normal(...).sample(): the localisation network never gets a gradient.

expect: no-gradient
line: place = torch.distributions.Normal(mean, self.std).sample()
source: https://github.com/jankrepl/deepdow/pull/106
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class GlimpseNet(nn.Module):
    """Looks at the whole field coarsely, picks a place, and reads the 10 x 10 pixels there."""

    def __init__(self, std=0.05):
        super().__init__()
        self.std = std
        self.locate = nn.Sequential(nn.Conv2d(1, 8, 5, stride=2, padding=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 9 * 9, 32), nn.ReLU(), nn.Linear(32, 2))
        self.read = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 25, 48), nn.ReLU(), nn.Linear(48, 10))
        ticks = torch.linspace(-1, 1, 10) * 10 / 18
        self.register_buffer("grid", torch.stack(torch.meshgrid(ticks, ticks, indexing="xy"), -1))

    def forward(self, field):
        mean = torch.tanh(self.locate(field))
        if self.training:
            place = torch.distributions.Normal(mean, self.std).sample()
        else:
            place = mean
        glimpse = F.grid_sample(field, self.grid + place[:, None, None], align_corners=False)
        return self.read(glimpse)


def scatter(images, n):
    """A digit of 8 x 8 somewhere in a field of 18 x 18."""
    pick = torch.randint(0, len(images), (n,))
    field = torch.zeros(n, 1, 18, 18)
    for i, (top, left) in enumerate(torch.randint(0, 11, (n, 2)).tolist()):
        field[i, 0, top : top + 8, left : left + 8] = images[pick[i]]
    return field, pick


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
digits = load_digits()
images, labels = torch.tensor(digits.images, dtype=torch.float32) / 16, torch.tensor(digits.target)
order = torch.randperm(len(images))
images, labels = images[order], labels[order]

net = GlimpseNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(900):
    net.train()
    field, pick = scatter(images[:1400], 48)
    loss = F.cross_entropy(net(field), labels[pick])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 90 == 0:
        print("step", step, "loss", loss.item())
net.eval()
with torch.no_grad():
    field, pick = scatter(images[1400:], 600)
    print("metric:", (net(field).argmax(1) == labels[1400:][pick]).float().mean().item())
