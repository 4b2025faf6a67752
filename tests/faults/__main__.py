"""The long form of the fault tests: `python -m tests.faults [KIND ...] [--tries N]`.

Prints one line per kind of fault: how many tries, how many failures. The seeds of the failures
follow, so that `--seed` can run one of them again.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.faults import KINDS

WORKERS = 2


def _try(job: tuple[str, int]) -> tuple[int, str | None]:
    """One attempt. Returns its seed, and the traceback if it failed."""
    kind, seed = job
    module = importlib.import_module(f"tests.faults.{kind}")
    with tempfile.TemporaryDirectory(prefix="nethook-faults-") as folder, _kept_quiet() as printed:
        try:
            module.attempt(seed, Path(folder))
        except BaseException:  # an interrupt that escaped is a failure like any other
            printed.seek(0)
            return seed, f"{printed.read()}{traceback.format_exc()}"
    return seed, None


@contextmanager
def _kept_quiet() -> Iterator[IO[str]]:
    """What is printed, also by child processes, goes to a file that is shown on failure."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        try:
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
            yield printed
        finally:
            for place, kept in enumerate(before, 1):
                os.dup2(kept, place)
                os.close(kept)


def _results(kind: str, seeds: range) -> Iterator[tuple[int, str | None]]:
    jobs = [(kind, seed) for seed in seeds]
    if len(jobs) == 1:
        yield _try(jobs[0])
        return
    # A process that is spawned does not import the `__main__` of a package under that name.
    work = importlib.import_module("tests.faults.__main__")._try
    # One process serves many tries, and each try runs in its main thread: signals need that.
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        yield from pool.imap_unordered(work, jobs, chunksize=8)


def main() -> int:
    """Runs what was asked for; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--tries", type=int, help="instead of each kind's own number")
    parser.add_argument("--seed", type=int, help="run this one try")
    options = parser.parse_args()
    unknown = set(options.kinds) - set(KINDS)
    if unknown:
        parser.error(f"no such kind: {', '.join(sorted(unknown))}. Kinds: {', '.join(KINDS)}")

    failed = False
    print(f"{'fault':<28} {'tries':>6} {'failures':>9} {'seconds':>8}", flush=True)
    for kind in options.kinds or KINDS:
        module = importlib.import_module(f"tests.faults.{kind}")
        if options.seed is not None:
            seeds = range(options.seed, options.seed + 1)
        else:
            seeds = range(options.tries or module.TRIES)
        start = time.perf_counter()
        failures = [(seed, text) for seed, text in _results(kind, seeds) if text is not None]
        seconds = time.perf_counter() - start
        print(f"{module.TITLE:<28} {len(seeds):>6} {len(failures):>9} {seconds:>8.0f}", flush=True)
        for seed, text in sorted(failures)[:5]:
            print(f"  seed {seed}:\n{text}", flush=True)
        failed = failed or bool(failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
