"""What the native kernel saves on whole windows, against numpy, which gives the same bytes.

    .venv/bin/python benchmarks/windows.py            # 60, 300 and 1,000 series
    .venv/bin/python benchmarks/windows.py 1000

Both ways take turns in one process, on the same numbers. On the training thread: the end of a step
(which series were measured in it), and the end of a window, which closes a sheet and opens another,
without and with its histograms. In the writer's thread: putting the rows of a sheet into the order
of their series and adding its histograms to a span (both by numpy alone), packing the records of a
window, its share of the overviews (one record of level 1 per eight windows), and emptying the
sheet. Times are microseconds of the processor.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nethook.runs.format.levels import GROUP, Group
from nethook.runs.format.records import Basis, pack_rows
from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import INDEX
from nethook.stats.native import binding, kernel
from nethook.stats.sheet import Sheet
from nethook.watching.series import Catalogue

UNITS = 256
WITH_UNITS = 10  # every tenth series is an activation, whose units are counted
ROUNDS = 60
NATIVE = kernel.functions


class Bench:
    """The rows of so many series, and made-up numbers to fill them with."""

    def __init__(self, folder: Path, series: int) -> None:
        import torch

        self.series = series
        self.writer = RunWriter(folder / f"{series}.db")
        self.catalogue = Catalogue(self.writer, series)
        self.rows = rows = self.catalogue.new_rows()
        values = torch.randn(4, UNITS)
        for index in range(series):
            unit_dim = 1 if index % WITH_UNITS == 0 else None
            slot = rows.slot(self.catalogue.row(f"layer{index}", "outputs") or 0, unit_dim=unit_dim)
            slot.fold(values * 2.0 ** (index % 30 - 15))
        rows.step_ended()
        random = np.random.default_rng(0)
        # All digits differ, as they do in a real run.
        rows.matrix[:, INDEX["mean"]] *= random.normal(1, 0.1, series)
        rows.matrix[:, INDEX["m2"]] *= random.lognormal(0, 0.1, series)
        self.matrix, self.histograms = rows.matrix.copy(), rows.histograms.copy()
        self.bits = [slot.bits.copy() for slot in rows.with_bits if slot.bits is not None]
        self.counts = rows.histograms.copy()
        self.window = self.close()
        self.basis = Basis()
        for _ in range(series):
            self.basis.add(0)
        self.basis.learn(self.matrix)

    def close(self, *, carries: bool = True) -> Sheet:
        """The window that ends."""
        self.window = self.catalogue.close(self.rows, "train", carries=carries)
        return self.window

    def measure(self) -> None:
        """Put a step's numbers into the open sheet, and give the last window back."""
        self.give_back()
        rows = self.rows
        rows.matrix[...] = self.matrix
        rows.histograms[...] = self.histograms
        for slot, bits in zip(rows.with_bits, self.bits, strict=True):
            if slot.bits is not None:
                slot.bits[...] = bits

    def give_back(self) -> None:
        """Empty the window, as the writer does."""
        if self.window.closed:
            self.writer._queue.give_back(self.window)

    def end(self) -> None:
        """A window, to be given back."""
        self.measure()
        self.close()

    def put_in_order(self) -> None:
        """Ask a window for its rows as the file has them."""
        self.window.in_order()

    def add_histograms(self) -> None:
        """Add the histograms of a window to those of a span."""
        for rows, series in self.window.runs:
            self.counts[series] += self.window.histograms[rows]

    def overviews(self) -> None:
        """Eight windows of a group, and its record."""
        group = Group()
        for _ in range(GROUP):
            group.add_rows(self.matrix)
        list(group.pack())


def seconds(run: Callable[[], object], before: Callable[[], object] | None = None) -> float:
    """Seconds of this thread that a call takes."""
    if before is not None:
        before()
    start = time.thread_time()
    run()
    return time.thread_time() - start


def compare(bench: Bench) -> dict[str, dict[str, float]]:
    """Job -> way -> microseconds of a call, in the quickest quarter of its rounds."""
    seen = np.ones(bench.series, np.int64)
    jobs: dict[str, tuple[Callable[[], object], Callable[[], object] | None, int]] = {
        "a step ends": (bench.rows.step_ended, bench.measure, 1),
        "closed, no histograms": (lambda: bench.close(carries=False), bench.measure, 1),
        "closed with histograms": (bench.close, bench.measure, 1),
        "put in order": (bench.put_in_order, bench.end, 1),
        "histograms added": (bench.add_histograms, bench.end, 1),
        "emptied": (bench.give_back, bench.end, 1),
        "records packed": (lambda: list(pack_rows(bench.matrix, seen, bench.basis)), None, 1),
        "overviews": (bench.overviews, None, GROUP),
    }
    took: dict[str, dict[str, list[float]]] = {}
    for _ in range(ROUNDS):
        for way, functions in (("native", NATIVE), ("numpy", None)):
            kernel.functions = binding.functions = functions
            with np.errstate(all="ignore"):
                for job, (run, before, share) in jobs.items():
                    rounds = took.setdefault(job, {}).setdefault(way, [])
                    rounds.append(seconds(run, before) / share * 1e6)
    kernel.functions = binding.functions = NATIVE
    return {
        job: {way: statistics.mean(sorted(all_)[: ROUNDS // 4]) for way, all_ in ways.items()}
        for job, ways in took.items()
    }


def main(sizes: list[int]) -> None:
    """Print a table per number of series."""
    with tempfile.TemporaryDirectory() as folder:
        for series in sizes:
            bench = Bench(Path(folder), series)
            heads = f"{'native µs':>10} {'numpy µs':>10} {'ratio':>7} {'numpy µs/series':>16}"
            print(f"\n{f'{series:,} series':<24} {heads}")
            for job, ways in compare(bench).items():
                native, numpy = ways["native"], ways["numpy"]
                ratio, per_series = numpy / native, numpy / series
                print(f"{job:<24} {native:>10.1f} {numpy:>10.1f} {ratio:>7.1f} {per_series:>16.3f}")
            bench.writer.close()


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [60, 300, 1000])
