"""python -m package.train: relative imports, a class that is pickled from __main__."""

import hashlib
import io
import sys

import torch
from torch import nn

from . import data
from .net import Gate


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 10), Gate(10))
        self.out = nn.Linear(10, 1)

    def forward(self, x):
        return self.out(self.inner(x))


def main():
    print(__name__, __package__, __spec__.name, sys.argv[1:])
    torch.manual_seed(18)
    x, y = data.waves(64)
    model = Model()
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.02)
    for step in range(6):
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(x), y)
        loss.backward()
        optimizer.step()
        print(f"{step} {loss.item():.6f}")
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    again = torch.load(buffer, weights_only=False)
    assert type(again) is Model
    weights = b"".join(p.detach().numpy().tobytes() for p in again.parameters())
    print("weights", hashlib.sha256(weights).hexdigest()[:16])


if __name__ == "__main__":
    main()
