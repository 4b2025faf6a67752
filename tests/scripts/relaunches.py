"""Starts itself again as a child process, as launchers of several ranks or sweeps do."""

import os
import subprocess
import sys

import torch
from torch import nn

from utils import blobs, checksum


def train(rank):
    torch.manual_seed(30 + rank)
    x, y = blobs(64)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"run {rank}: {loss.item():.6f} {checksum(model)}", flush=True)


if __name__ == "__main__":
    if "SWEEP_RUN" in os.environ:
        train(int(os.environ["SWEEP_RUN"]))
    else:
        train(0)
        child = subprocess.run(
            [sys.executable, *sys.argv],
            env={**os.environ, "SWEEP_RUN": "1"},
            capture_output=True,
            text=True,
        )
        print("child says:", child.stdout.strip(), child.returncode)
