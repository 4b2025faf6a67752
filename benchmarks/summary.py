"""The native kernel against `torch.sum` and against five torch calls, by size, type and threads.

    python benchmarks/summary.py            # about two minutes
    python benchmarks/summary.py --quick    # sizes up to 4 MB

Each line is one size: the time of `torch.sum`, and how many times that each of the others takes.
All are measured in turn, in the same run, and the lower quartile of each counts, since other work
on the machine mostly adds. With one thread it is the time that the processor spent, with two that
on the clock. "moments" is the native kernel without a histogram, "summary" with the one
that a watched run takes (at most 4,096 elements a tensor, in rotation), "all bins" with a histogram
of every element; "five calls" are mean, std, min, max and the share of zeros. The native kernel has
one thread; with two, only torch has two.

The bounds are those of the design: on 100 MB of float32 with one thread, moments within 1.5 times
and summaries within 2.5 times `torch.sum`. The program fails where they are not kept.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import torch

from nethook.stats.native import binding
from nethook.stats.rows import EVERY, Rows

MB = 1_000_000
SIZES = {"1 KB": 1_000, "32 KB": 32_000, "1 MB": MB, "4 MB": 4 * MB, "100 MB": 100 * MB}
LARGEST = {"400 MB": 400 * MB}
TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32)
BOUNDS = {"moments": 1.5, "summary": 2.5}
SECONDS = 0.4  # for each size and type ...
ROUNDS = 11  # ... and at least so many rounds
SLOW = ("all bins", "five calls")  # no bound rests on them: three rounds are enough


def five_calls(x: torch.Tensor) -> None:
    """What people write by hand to follow a layer."""
    x.mean()
    x.std()
    x.min()
    x.max()
    (x == 0).to(x.dtype).mean()


def contestants(x: torch.Tensor) -> dict[str, Callable[[], object]]:
    """What is timed, by name; `torch.sum` first."""
    rows = Rows(2)
    plain, strided = rows.slot(0, histogram=False), rows.slot(1)
    every = Rows(1, limit=EVERY).slot(0)
    runs: dict[str, Callable[[], object]] = {
        "sum": x.sum,
        "moments": lambda: plain.fold(x),
        "summary": lambda: strided.fold(x),
        "all bins": lambda: every.fold(x),
    }
    if x.is_floating_point():
        runs["five calls"] = lambda: five_calls(x)
    return runs


def quartiles(
    runs: dict[str, Callable[[], object]], clock: Callable[[], float]
) -> dict[str, float]:
    """The lower quartile of the times of each, taken in turn."""
    inner = {}
    for name, run in runs.items():  # calls of a few microseconds are timed many at once
        start = time.perf_counter()
        run()
        inner[name] = max(1, min(200, int(2e-4 / (time.perf_counter() - start))))
    times: dict[str, list[float]] = {name: [] for name in runs}
    began, rounds = time.perf_counter(), 0
    while rounds < ROUNDS or time.perf_counter() - began < SECONDS:
        for name, run in runs.items():
            if name in SLOW and rounds >= 3:
                continue
            start = clock()
            for _ in range(inner[name]):
                run()
            times[name].append((clock() - start) / inner[name])
        rounds += 1
    return {name: sorted(taken)[len(taken) // 4] for name, taken in times.items()}


def main() -> int:
    """Print the tables; 1 if a bound is not kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out 100 MB and 400 MB")
    quick = parser.parse_args().quick
    print(f"torch {torch.__version__}, native kernel: {binding.instruction_set()}")
    if binding.fold is None:
        print("There is no native kernel here: nothing to measure.")
        return 1
    late = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for dtype in TYPES:
            sizes = dict(SIZES)
            if dtype == torch.float32:
                sizes.update(LARGEST)
            if quick:
                sizes = {name: size for name, size in sizes.items() if size <= 4 * MB}
            name = str(dtype).removeprefix("torch.")
            print(f"\n{name}, {threads} thread{'s' if threads > 1 else ''}")
            heads = ("moments", "summary", "all bins", "five calls")
            print(f"{'size':>8} {'torch.sum':>12}  " + "".join(f"{head:>12}" for head in heads))
            for label, size in sizes.items():
                x = torch.randn(size // dtype.itemsize).mul_(100).to(dtype)
                clock = time.thread_time if threads == 1 else time.perf_counter
                taken = quartiles(contestants(x), clock)
                ratios = {head: taken[head] / taken["sum"] for head in heads if head in taken}
                shown = "".join(f"{ratios[h]:>11.2f}×" if h in ratios else " " * 12 for h in heads)
                print(f"{label:>8} {taken['sum'] * 1e6:>9.1f} µs  {shown}", flush=True)
                if (label, dtype, threads) == ("100 MB", torch.float32, 1):
                    late += [
                        f"{head}: {ratios[head]:.2f} times torch.sum, and must stay within {bound}"
                        for head, bound in BOUNDS.items()
                        if ratios[head] > bound
                    ]
    print("\n" + ("\n".join(late) if late else "Within the bounds." if not quick else "Done."))
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
