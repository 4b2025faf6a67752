"""A network whose hidden layer holds a variable in a known subspace."""

import torch
from torch import nn


def planted(seed=0):
    """Inputs are (a, b, noise…); the model says the sign of a. `unit` is where it keeps a."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        turn = torch.linalg.qr(torch.randn(8, 8, dtype=torch.double)).Q
        model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 2, bias=False)).double()
        with torch.no_grad():
            model[0].weight.copy_(turn.T)
            model[1].weight.copy_(torch.outer(torch.tensor([-3.0, 3.0]).double(), turn.T[:, 0]))
    return model, turn.T[:, 0]


def pairs(rows=200, seed=1):
    random = torch.Generator().manual_seed(seed)
    base, source = torch.randn(2, rows, 8, generator=random, dtype=torch.double)
    return base, source, (source[:, 0] > 0).long()
