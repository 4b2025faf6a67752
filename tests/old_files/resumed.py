"""Trainings that go on in a run of 0.1.

python -m tests.old_files.resumed RUN STORE RANK        one of two ranks
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import nethook
from tests.old_files import models

Trained = tuple[Any, list[torch.optim.Optimizer], Callable[[torch.Tensor], torch.Tensor]]


def built(name: str) -> Trained:
    """The model of a run, its optimizers, and what is called with a batch."""
    if name == "gan":
        first, second = models.generator(), models.discriminator()
        optimizers = [torch.optim.Adam(each.parameters(), 0.01) for each in (first, second)]
        return {"G": first, "D": second}, optimizers, lambda x: second(first(x[:, :2]))
    make = {"dead": models.dead, "nan": models.Logarithm}.get(name, models.classifier)
    model: nn.Module = make()
    return model, [torch.optim.SGD(model.parameters(), 0.1)], model


def go_on(path: Path, trained: Trained, steps: int = 3, **options: Any) -> list[float]:
    """Train some steps more; the losses, as the script saw them."""
    model, optimizers, call = trained
    losses = []
    with nethook.watch(model, optimizers, to=path, resume=True, budget=None, **options) as watch:
        watch.be_silent()
        assert watch.resumed
        for step in range(steps):
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss = call(models.numbers(8, 4, seed=step).abs()).square().mean()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            losses.append(loss.item())
    return losses


if __name__ == "__main__":
    run, store, rank = sys.argv[1:]
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
    model, _, _ = built("ranks")
    parallel = DistributedDataParallel(model)
    go_on(Path(run), (parallel, [torch.optim.SGD(model.parameters(), 0.1)], parallel))
    dist.barrier()
    dist.destroy_process_group()
