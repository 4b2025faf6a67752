"""Two spirals with a stack of hidden layers whose number is an argument; the layers sat in a Python list, so only the last layer was ever trained.

expect: unregistered-layers
or: optimizer-misses-parameters
line: self.hidden = []
source: https://github.com/pytorch/pytorch/issues/715
metric: accuracy on fresh points, higher is better
"""
import sys

import numpy as np
import torch
import torch.nn as nn


def spirals(n, rng):
    t = np.sqrt(rng.uniform(0.02, 1, n)) * 2.2 * np.pi
    k = rng.integers(0, 2, n)
    r = t / (2.2 * np.pi)
    x = np.stack([r * np.cos(t + np.pi * k), r * np.sin(t + np.pi * k)], 1)
    x = x * 2 + rng.normal(0, 0.03, x.shape)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(k)


class SpiralNet(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.hidden = []
        in_dim = 2
        for li in range(options["n_layers"]):
            self.hidden.append(nn.Linear(in_dim, options["n_hid"]))
            in_dim = options["n_hid"]
        self.classifier = nn.Linear(options["n_hid"], 2)

    def forward(self, x):
        h = x
        for layer in self.hidden:
            h = torch.tanh(layer(h))
        return self.classifier(h)


options = {"n_hid": 24, "n_layers": 4, "lr": 0.01, "updates": 700}
seed = 0
if len(sys.argv) > 2 and sys.argv[1] == "--seed":
    seed = int(sys.argv[2])

torch.manual_seed(seed)
rng = np.random.default_rng(seed)
x, y = spirals(800, rng)
net = SpiralNet(options)
optimizer = torch.optim.Adam(net.parameters(), lr=options["lr"])
for u in range(options["updates"]):
    idx = torch.randint(0, len(x), (128,))
    loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (u + 1) % 100 == 0:
        print(u + 1, loss.item())

xt, yt = spirals(1000, rng)
print("metric:", round(float((net(xt).argmax(1) == yt).float().mean()), 4))
