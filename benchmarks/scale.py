"""How a run file grows: 10^3 to 10^6 simulated steps of 100 layers (1,000 series).

    .venv/bin/python benchmarks/scale.py                  # some minutes
    .venv/bin/python benchmarks/scale.py 1000 10000

One run is written, on the disk of the current folder. At each length it pauses, and a process of
its own reads it as it is, with nothing of it in memory. Measured: the size of the file, the memory
of the writer, what handing a window over costs the training thread, and how long a reader waits for
the first overview, for one layer's histogram over time, and for one series in full. The bounds
stand below the numbers.

What is simulated: the numbers. Every window has new random moments, extrema, counts and histograms
for every series, with all their digits, so nothing compresses better than in a real run. A window
is filled at once instead of step by step; folding steps into it is measured by
benchmarks/summary.py.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nethook.runs.reading.run import open_run
from nethook.runs.writing.queue import CAPACITY
from nethook.runs.writing.windowing import WindowClock
from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import INDEX, ZERO_BIN
from nethook.stats.sheet import Sheet

LAYERS = 100
QUANTITIES = (  # ten series a layer; outputs have units
    *("outputs", "grads", "params.weight", "params.bias", "param_grads.weight"),
    *("param_grads.bias", "updates.weight", "updates.bias", "clipped.weight", "clipped.bias"),
)
SERIES = LAYERS * len(QUANTITIES)
UNITS = 256
NOTES = """
file: with its -wal file, which is up to 16 MB and gone when the run is closed.
memory: growth of the writing process at its peak, with making up the numbers.
hand over: submit() on the training thread. writer: processor time of its thread, beside training.
load: processes that want a core; above the number of cores all times are longer than they are."""
LENGTHS = (10**3, 10**4, 10**5, 10**6)


class Simulation:
    """Random numbers in the shape of a training run."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.scale = 2.0 ** self.random.integers(-12, 6, SERIES)
        self.elements = self.random.integers(10**3, 10**6, SERIES)
        self.rectified = np.arange(SERIES) % len(QUANTITIES) == 0
        # What a normal law puts into each bin of one sign, 30 octaves down from its top.
        edges = np.exp2(np.arange(-108, 13) / 4)
        below = np.array([math.erf(edge / math.sqrt(2)) for edge in edges])
        self.shares = np.diff(below) / 2  # (120,)
        # Of a large tensor the histogram reads 4,096 elements.
        self.binned = np.minimum(self.elements, 4096)
        self.lowest = np.log2(self.scale).astype(int)[:, None] * 4 + ZERO_BIN // 2 - 108

    def fill(self, window: Sheet, first: int, steps: int) -> None:
        """Put `steps` steps of made-up numbers into a window."""
        random, rows, total = self.random, window.rows, self.elements * steps
        column = {name: rows[:, at] for name, at in INDEX.items()}
        column["tensors"][:] = steps
        column["count"][:], column["binned"][:] = total, self.binned * steps
        column["zeros"][self.rectified] = random.binomial(total[self.rectified], 0.5)
        column["mean"][:] = self.scale * random.normal(0, 0.1, SERIES)
        column["m2"][:] = total * self.scale**2 * random.lognormal(0, 0.1, SERIES)
        extreme = (self.scale * random.normal(4, 0.2, (2, SERIES))).astype(np.float32)
        column["min"][:], column["max"][:] = -extreme[0], extreme[1]
        column["units"][self.rectified] = UNITS
        window.bits[:] = random.random(window.bits.size) < 0.9
        column["active"][self.rectified] = window.bits.reshape(-1, UNITS).sum(axis=1)
        expected = self.shares * (self.binned * steps)[:, None]
        for sign in (-1, 1):
            noise = np.sqrt(expected) * random.standard_normal(expected.shape, dtype=np.float32)
            counts = np.maximum(np.rint(expected + noise), 0).astype(np.int64)
            places = ZERO_BIN + sign * (self.lowest + np.arange(120))
            np.put_along_axis(window.histograms, places, counts, axis=1)
        window.seen[:] = steps
        window.first_step, window.last_step, window.steps = first, first + steps - 1, steps


def declare(writer: RunWriter) -> None:
    """Tell a writer of all series."""
    for layer in range(LAYERS):
        writer.add_site(f"layer{layer}", "Linear")
        for quantity in QUANTITIES:
            writer.add_series(
                f"layer{layer}", quantity, units=UNITS if quantity == "outputs" else 0
            )


def wait_for_room(writer: RunWriter) -> None:
    """Real steps take longer than it takes to write them; simulated ones take no time.

    The writer's thread is woken when half of its queue is full, and else looks once in a second.
    """
    while 2 * writer.waiting >= CAPACITY:
        time.sleep(0.0005)


@dataclass
class Cost:
    """What writing cost since the last row of the table."""

    windows: int = 0
    handing: float = 0.0  # seconds in submit()
    beside: float = 0.0  # seconds of processor time that were not the training thread's


def write(writer: RunWriter, lengths: list[int]) -> Iterator[tuple[int, int, Cost]]:
    """Write a run; at each length, with everything on disk: steps, windows, and what it cost."""
    simulation, clock, window = Simulation(), WindowClock(), writer.window()
    windows, cost = 0, Cost()
    for steps in lengths:
        mine, all_of_it = time.thread_time(), time.process_time()
        while clock.first < steps:
            simulation.fill(window, clock.first, min(clock.end, steps) - clock.first)
            wait_for_room(writer)
            begin = time.perf_counter()
            window = writer.submit(window)
            cost.handing += time.perf_counter() - begin
            cost.windows += 1
            writer.log("loss", 1.0 / (1 + clock.first), clock.first)
            clock.open(min(clock.end, steps))
        cost.beside = (time.process_time() - all_of_it) - (time.thread_time() - mine)
        writer.flush(600)
        windows += cost.windows
        yield steps, windows, cost
        cost = Cost()


def read(path: Path) -> None:
    """Ask a run three questions; print how long each took, and its processor time."""
    questions: dict[str, Callable[[], object]] = {
        "overview": lambda: open_run(path).overview(),
        "histogram": lambda: open_run(path).histograms("layer50", "outputs").quantiles(),
        "series": lambda: open_run(path).series("layer50", "outputs"),
    }
    found = {}
    for name, question in questions.items():
        for file in (path, Path(f"{path}-wal")):
            with file.open("rb") as stream:  # out of the memory of the system
                os.fsync(stream.fileno())
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        begin, work = time.perf_counter(), time.process_time()
        question()
        found[name] = (time.perf_counter() - begin, time.process_time() - work)
    print(json.dumps(found))


def peak() -> int:
    """The most memory that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(lengths: list[int]) -> None:
    """Print a table: a row a length, the bounds below."""
    print(f"{LAYERS} layers, {SERIES:,} series, {os.cpu_count()} cores\n")
    head = (
        f"{'steps':>9} {'windows':>8} {'file':>7} {'memory':>10} {'hand over':>12} "
        f"{'overview':>14} {'histogram':>14} {'one series':>14} {'writer':>10} {'load':>5}"
    )
    units = (
        f"{'':>9} {'':>8} {'MB':>7} {'KB/series':>10} {'µs/s./window':>12} "
        f"{'s (cpu), cold':>14} {'s (cpu), cold':>14} {'s (cpu), cold':>14} {'ms/window':>10}"
    )
    print(head, units, "-" * len(head), sep="\n")
    with tempfile.TemporaryDirectory(dir=".", prefix=".scale-") as folder:
        path = Path(folder).absolute() / "run.db"
        before = peak()
        writer = RunWriter(path)
        declare(writer)
        for steps, windows, cost in write(writer, lengths):
            done = subprocess.run(
                [sys.executable, __file__, "read", str(path)],
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            )
            took = [f"{wall:.3f} ({cpu:.2f})" for wall, cpu in json.loads(done.stdout).values()]
            size = sum(file.stat().st_size for file in (path, Path(f"{path}-wal")))
            print(
                f"{steps:>9,} {windows:>8,} {size / 1e6:>7.1f} "
                f"{(peak() - before) / 1e3 / SERIES:>10.1f} "
                f"{cost.handing / cost.windows / SERIES * 1e6:>12.3f} "
                f"{took[0]:>14} {took[1]:>14} {took[2]:>14} "
                f"{cost.beside / cost.windows * 1e3:>10.1f} {os.getloadavg()[0]:>5.1f}",
                flush=True,
            )
        writer.close(timeout=600)
        closed = path.stat().st_size / 1e6
    bounds = f"{'≤ 400':>7} {'≤ 64':>10} {'≤ 1':>12} {'< 0.3':>14}"
    print("-" * len(head), f"{'bound':>9} {'':>8} {bounds}", sep="\n")
    print(f"\nclosed, the file has {closed:.1f} MB{NOTES}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        read(Path(sys.argv[2]))
    else:
        main([int(argument) for argument in sys.argv[1:]] or list(LENGTHS))
