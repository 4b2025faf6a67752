"""How a run file grows: 10^3 to 10^6 simulated steps of 100 layers (1,000 series).

    .venv/bin/python benchmarks/scale.py            # all four, some minutes
    .venv/bin/python benchmarks/scale.py 1000 10000

Measured for each length, in a process of its own and on the disk of the current folder: the size of
the file, the memory of the writer, what handing a window over costs the training thread, and how
long a reader that starts cold waits for the first overview, for one layer's histogram over time,
and for one series in full. Each number stands beside its bound.

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
from pathlib import Path
from typing import Any

import numpy as np

from nethook.runs.clock import WindowClock
from nethook.runs.run import open_run
from nethook.runs.window import Window
from nethook.runs.writer import RunWriter
from nethook.stats.fields import INDEX, ZERO_BIN

LAYERS = 100
QUANTITIES = (  # ten series a layer; outputs have units
    *("outputs", "grads", "params.weight", "params.bias", "param_grads.weight"),
    *("param_grads.bias", "updates.weight", "updates.bias", "clipped.weight", "clipped.bias"),
)
SERIES = LAYERS * len(QUANTITIES)
UNITS = 256
NOTES = """
file: what is left when the run is closed. memory: growth of the writing process at its peak.
hand over: submit() on the training thread. provisional: a copy of the open window, every 5 s.
writer thread: its processor time, beside training. in all: with making up the numbers."""
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

    def fill(self, window: Window, first: int, steps: int) -> None:
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


def write(path: Path, steps: int) -> dict[str, float]:
    """Write a run; what it cost."""
    simulation = Simulation()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    writer = RunWriter(path)
    for layer in range(LAYERS):
        writer.add_site(f"layer{layer}", "Linear")
        for quantity in QUANTITIES:
            units = UNITS if quantity == "outputs" else 0
            writer.add_series(f"layer{layer}", quantity, units=units)
    clock, window = WindowClock(), writer.window()
    windows, handing, started = 0, 0.0, time.perf_counter()
    main_before, all_before = time.thread_time(), time.process_time()
    while clock.first < steps:
        simulation.fill(window, clock.first, min(clock.end, steps) - clock.first)
        while writer.waiting:  # a step takes longer than this; simulated ones take no time
            time.sleep(0.0005)
        begin = time.perf_counter()
        window = writer.submit(window)
        handing += time.perf_counter() - begin
        writer.log("loss", 1.0 / (1 + clock.first), clock.first)
        windows += 1
        clock.open(clock.end)
    main_after, all_after = time.thread_time(), time.process_time()
    begin = time.perf_counter()
    simulation.fill(window, steps, 1)
    filled = time.perf_counter()
    writer.submit_provisional(window)
    provisional = time.perf_counter() - filled
    writer.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "windows": windows,
        "seconds": filled - started,
        "bytes": path.stat().st_size,
        "memory": (peak - before) * 1024 / SERIES,
        "handing": handing / windows / SERIES * 1e6,
        "provisional": provisional / SERIES * 1e6,
        "writer": ((all_after - all_before) - (main_after - main_before)) / windows * 1e3,
    }


def read(path: Path) -> dict[str, float]:
    """Read a run with nothing of it in memory; how long each question took."""
    found = {}
    questions: dict[str, Any] = {
        "overview": lambda: open_run(path).overview(),
        "histogram": lambda: open_run(path).histograms("layer50", "outputs").quantiles(),
        "series": lambda: open_run(path).series("layer50", "outputs"),
    }
    for name, question in questions.items():
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        begin = time.perf_counter()
        question()
        found[name] = time.perf_counter() - begin
    return found


def in_a_process(what: str, path: Path, steps: int) -> dict[str, float]:
    """Do one part in a fresh process, so that neither memory nor caches are shared."""
    done = subprocess.run(
        [sys.executable, __file__, what, str(path), str(steps)],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main(lengths: list[int]) -> None:
    """Print a table: a row a length, the bounds below."""
    print(f"{LAYERS} layers, {SERIES:,} series; each row is one run, written and read once\n")
    head = (
        f"{'steps':>9} {'windows':>8} {'file':>9} {'memory':>10} {'hand over':>12} "
        f"{'overview':>9} {'histogram':>10} {'one series':>11} | {'provisional':>12} "
        f"{'writer thread':>14} {'in all':>7}"
    )
    units = (
        f"{'':>9} {'':>8} {'MB':>9} {'KB/series':>10} {'µs/s./window':>12} {'s, cold':>9} "
        f"{'s, cold':>10} {'s, cold':>11} | {'µs/series':>12} {'ms/window':>14} {'s':>7}"
    )
    print(head, units, "-" * len(head), sep="\n")
    for steps in lengths:
        with tempfile.TemporaryDirectory(dir=".", prefix=".scale-") as folder:
            path = Path(folder).absolute() / "run.db"
            wrote = in_a_process("write", path, steps)
            was_read = in_a_process("read", path, steps)
        print(
            f"{steps:>9,} {wrote['windows']:>8,} {wrote['bytes'] / 1e6:>9.1f} "
            f"{wrote['memory'] / 1e3:>10.1f} {wrote['handing']:>12.3f} "
            f"{was_read['overview']:>9.3f} {was_read['histogram']:>10.3f} "
            f"{was_read['series']:>11.3f} | {wrote['provisional']:>12.2f} "
            f"{wrote['writer']:>14.1f} {wrote['seconds']:>7.0f}",
            flush=True,
        )
    bounds = f"{'≤ 400':>9} {'≤ 64':>10} {'≤ 1':>12} {'< 0.3':>9}"
    print("-" * len(head), f"{'bound':>9} {'':>8} {bounds}", NOTES, sep="\n")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments and arguments[0] in ("write", "read"):
        what, where, length = arguments
        result = write(Path(where), int(length)) if what == "write" else read(Path(where))
        print(json.dumps(result))
    else:
        main([int(argument) for argument in arguments] or list(LENGTHS))
