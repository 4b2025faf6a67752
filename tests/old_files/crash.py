"""A training script that raises at step 9; with `--mended` it trains to the end."""

import sys

import torch
from models import classifier, labelled
from torch import nn

model = classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(12):
    x, y = labelled(16, seed=step)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    if step == 9 and "--mended" not in sys.argv:
        raise ValueError("no more data")
    optimizer.step()
    print(repr(loss.item()))
