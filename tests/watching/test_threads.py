"""`watch(threads="all")`: several threads that train at once."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from threading import Barrier, Thread

import torch
from torch import nn

import nethook
from nethook.runs.names import FAILED, INTERRUPTED

THREADS, ROUNDS = 3, 60


def train(path: Path) -> None:
    """Trains a model in each thread, all at once."""
    torch.manual_seed(0)
    models = {
        f"m{at}": nn.Sequential(nn.Linear(20, 100), nn.ReLU(), nn.Linear(100, 2))
        for at in range(THREADS)
    }
    optimizers = [torch.optim.Adam(model.parameters()) for model in models.values()]
    together = Barrier(THREADS)

    def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        together.wait()
        for _ in range(ROUNDS):
            optimizer.zero_grad()
            model(torch.randn(64, 20)).square().mean().backward()
            optimizer.step()

    with nethook.watch(models, optimizers, to=path, threads="all", budget=None):
        pairs = zip(models.values(), optimizers, strict=True)
        threads = [Thread(target=loop, args=pair) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_threads_that_step_at_once_are_not_inside_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    # In a process of its own: to read the gradients of another thread's pass crashes it. Not in a
    # fork: after the whole suite nothing was trained in one (torch 2.11 and 2.15), probably because
    # torch refuses backward in a fork of a process that had threads for it.
    process = multiprocessing.get_context("spawn").Process(target=train, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == 0
    run = nethook.open_run(path)
    totals = run.info["totals"]
    assert totals["optimizer_steps"] == {str(at): ROUNDS for at in range(THREADS)}
    assert totals["forwards"] == totals["backwards"] == THREADS * ROUNDS
    assert not [event.message for event in run.events if event.kind in (FAILED, INTERRUPTED)]
