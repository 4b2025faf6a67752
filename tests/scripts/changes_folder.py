"""Works in a folder of its own, as Hydra does, and writes its results there."""

import functools
import os
from pathlib import Path

import torch
from torch import nn

from utils import blobs, checksum


def in_folder(name):
    def decorate(function):
        @functools.wraps(function)
        def call(*args):
            before = Path.cwd()
            folder = before / "outputs" / name
            folder.mkdir(parents=True, exist_ok=True)
            os.chdir(folder)
            try:
                return function(*args)
            finally:
                (folder / "done").touch()

        return call

    return decorate


@in_folder("first")
def main():
    torch.manual_seed(16)
    x, y = blobs(64)
    model = nn.Sequential(nn.Linear(8, 8), nn.ELU(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for epoch in range(4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch}: {loss.item():.6f}")
    torch.save(model.state_dict(), "last.pt")
    print("weights", checksum(model), Path.cwd().name, sorted(os.listdir()))


if __name__ == "__main__":
    main()
