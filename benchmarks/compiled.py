"""What watching a compiled training step costs: on against off, in one run.

    OMP_NUM_THREADS=1 python benchmarks/compiled.py [mnist] [gpt2] [--profile]

The model is compiled whole (`fullgraph=True`, Inductor). Every way runs in a process of its own and
compiles for itself; then they take turns, some steps at a time. Two ratios are printed, as in
watch.py: of the time of the clock, which is what the bounds are about on a machine that has nothing
else to do, and of the processor, nethook's writer thread included. Compiling is not counted (it
takes minutes), nor are the first steps, with which a run begins in detail, nor the doctor's looks
at the run (watch.py says what one takes). The last figure of a
line says how many graphs that way has: with a budget there are two.
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
from torch import Tensor, nn
from torch.nn import functional as F
from watch import gpt2 as gpt2_with_loss
from watch import mnist

WAYS = ("without", "nethook, its budget", "nethook, no budget")
# Steps before it counts, turns, steps a turn; and the bounds of the design: with budget, without.
SIZES = {"mnist": (150, 8, 12, (1.10, 1.25)), "gpt2": (300, 10, 20, (1.10, 1.25))}


def gpt2() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    """As in watch.py; the loss is taken outside, for what takes it inside cannot be compiled."""
    tokens = torch.randint(100, (2, 64))
    model, _ = gpt2_with_loss()
    return model, lambda model: F.cross_entropy(
        model(tokens).logits.flatten(0, 1), tokens.flatten()
    )


def work(name: str, way: str, pipe: Connection, profile: bool) -> None:
    """Trains as many steps as it is told to, and says what they took."""
    from torch._dynamo.utils import counters

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, loss_of = {"mnist": mnist, "gpt2": gpt2}[name]()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.compile(fullgraph=True)
    folder = tempfile.TemporaryDirectory()
    watch = None
    if way != WAYS[0]:
        import nethook

        hold_the_doctor()
        budget = {"budget": None} if way == WAYS[2] else {}
        watch = nethook.watch(model, optimizer, to=f"{folder.name}/run.db", **budget)  # type: ignore[arg-type]

    def steps(count: int) -> Turn:
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(count):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        return wall / count, processor / count

    while True:
        asleep = time.perf_counter()
        count = pipe.recv()
        if count == 0:
            break
        if watch is not None:
            watch._session.schedule.budget.leave_out(time.perf_counter() - asleep)
        if profile and way == WAYS[2] and count < 0:
            import cProfile
            import pstats

            steps(2)
            run = cProfile.Profile()
            run.runcall(steps, -count)
            pstats.Stats(run).sort_stats("tottime").print_stats(30)
        pipe.send(steps(abs(count)))
    if watch is not None:
        watch.close()
    graphs = counters["stats"]["unique_graphs"]
    pipe.send((None if watch is None else watch.overhead, graphs))


def measure(name: str, profile: bool) -> None:
    """Runs all ways by turns and prints what a step takes, and the ratios."""
    warm, turns, each, bounds = SIZES[name]
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for way in WAYS:
        ours, theirs = context.Pipe()
        context.Process(target=work, args=(name, way, theirs, profile), daemon=True).start()
        pipes[way] = ours

    def ask(way: str, count: int) -> Turn:
        pipes[way].send(count)
        took: Turn = pipes[way].recv()
        return took

    for way in WAYS:  # all at once: nothing of this counts
        pipes[way].send(3)
    for way in WAYS:
        pipes[way].recv()
    for way in WAYS:
        ask(way, -warm if profile else warm)
    took: dict[str, list[Turn]] = {way: [] for way in WAYS}
    for _ in range(turns):
        for way in WAYS:
            took[way].append(ask(way, each))
    base = typical([wall for wall, _ in took[WAYS[0]]])
    print(f"{name}: a compiled training step, {base * 1000:.2f} ms without", flush=True)
    for way, limit in zip(WAYS, (None, *bounds), strict=True):
        pipes[way].send(0)
        said, graphs = pipes[way].recv()
        bound = "" if limit is None else f"  at most {limit}"
        own = "" if said is None else f"  it says {1 + said:.3f}"
        shown = against(took[way], took[WAYS[0]])
        print(f"  {way:22} {shown}{bound}{own}, {graphs} graphs", flush=True)


def main() -> None:
    """Those that are named, or all."""
    keep_freed_memory()
    names = [each for each in sys.argv[1:] if not each.startswith("-")] or list(SIZES)
    for name in names:
        measure(name, "--profile" in sys.argv)


if __name__ == "__main__":
    main()
