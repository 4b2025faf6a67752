"""What the short way through steps in which nothing is due gains: `watching/lull`, on against off.

    OMP_NUM_THREADS=1 python benchmarks/lull.py [wide] [deep]

A training step of about 5 ms is watched with the usual budget, by turns with the short way and
without it, each in a process of its own. The short way is one more to keep right, and knows where
torch calls its backward from: it has to gain 2 % of the step, 100 µs, to be worth that. Beside the
clock stands the processor's time of the thread that trains, which is right on a busy machine, too.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import torch
from timing import Turn, against, hold_the_doctor, keep_freed_memory, typical
from torch import nn
from torch.nn import functional as F

NETWORKS = {"wide": (3, 384, 128), "deep": (26, 64, 64)}  # layers, their width, samples a batch
SIDES = ("unwatched", "on", "off")
WARM, TURNS, STEPS = 400, 60, 15


def network(name: str) -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    """A multilayer perceptron, and its loss."""
    layers, width, batch = NETWORKS[name]
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.ReLU()]
    x, y = torch.randn(batch, width), torch.randint(10, (batch,))
    return nn.Sequential(*parts, nn.Linear(width, 10)), lambda model: F.cross_entropy(model(x), y)


def work(name: str, side: str, pipe: Connection) -> None:
    """Trains as many steps as it is told to, and says what they took."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, loss_of = network(name)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    folder = tempfile.TemporaryDirectory()
    watch = None
    if side != "unwatched":
        import nethook
        from nethook.watching.loop.fast_path import Lull

        hold_the_doctor()
        if side == "off":
            setattr(Lull, "_plain_track", lambda _: None)  # noqa: B010 - a switch of the benchmark
        watch = nethook.watch(model, optimizer, to=f"{folder.name}/run.db")
    while True:
        asleep = time.perf_counter()
        count = pipe.recv()
        if count == 0:
            break
        if watch is not None:
            watch._session.budget.leave_out(time.perf_counter() - asleep)
        wall, processor = time.perf_counter(), time.thread_time()
        for _ in range(count):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
        wall, processor = time.perf_counter() - wall, time.thread_time() - processor
        pipe.send((wall / count, processor / count))
    if watch is not None:
        watch.close()


def measure(name: str) -> None:
    """Runs all sides by turns and prints what a step takes, and what is gained."""
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for side in SIDES:
        pipes[side], theirs = context.Pipe()
        context.Process(target=work, args=(name, side, theirs), daemon=True).start()

    def ask(side: str, count: int) -> Turn:
        pipes[side].send(count)
        took: Turn = pipes[side].recv()
        return took

    for side in SIDES:
        ask(side, WARM)
    took: dict[str, list[Turn]] = {side: [] for side in SIDES}
    for _ in range(TURNS):
        for side in SIDES:
            took[side].append(ask(side, STEPS))
    for pipe in pipes.values():
        pipe.send(0)
    usual = {side: [typical([turn[at] for turn in took[side]]) for at in (0, 1)] for side in SIDES}
    shown = "  ".join(f"{side} {usual[side][0] * 1000:.3f} ms" for side in SIDES)
    clock, processor = ((usual["off"][at] - usual["on"][at]) * 1e6 for at in (0, 1))
    print(f"{name}: {shown}")
    print(f"  gained: clock {clock:.0f} µs, processor {processor:.0f} µs a step; at least 100")
    print(f"  off to on: {against(took['off'], took['on'])}", flush=True)


def main() -> None:
    """Those that are named, or all."""
    keep_freed_memory()
    for name in sys.argv[1:] or NETWORKS:
        measure(name)


if __name__ == "__main__":
    main()
