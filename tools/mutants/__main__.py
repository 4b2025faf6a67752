"""Mutation run: does a test fail for every guard that is taken away?

    python -m tools.mutants                            the room `hooks/`, with its tests
    python -m tools.mutants --file autograd/gradients.py   one file
    python -m tools.mutants --lines autograd/gradients.py:40-60   the mutants of some lines
    python -m tools.mutants --sample 3                 every third of them
    python -m tools.mutants --list                     the mutants, without running anything

Each mutant is one change to the source: a condition negated, an operator swapped, a statement, an
argument, a decorator or a `with` left out, a constant or a returned value replaced. The tests of
its file run against it, then those that `GUARDS` names for the file. A mutant that makes a test
fail (or hang) is killed; one that does not has survived, and shows either a missing test or code
that does nothing.

torch is imported once. Each mutant is a fork of this process, in which the changed source is
loaded in place of the file; the working tree is never written to. What a test starts as a new
process does not have the change, so such tests guard nothing here.
"""

# ruff: noqa: T201  (a program that prints for people)

from __future__ import annotations

import argparse
import gc
import itertools
import os
import shlex
import sys
import time
from collections.abc import Iterator

from tools.mutants.changes import Mutant, mutants
from tools.mutants.forks import Limit, run
from tools.mutants.guards import ROOM, ROOT, named, tests_for


def main() -> None:
    """Makes the mutants, runs the tests against each, and prints who survived."""
    options = _arguments()
    chosen = [
        mutant
        for file in sorted(set(ROOM.rglob("*.py")) - set(ROOM.glob("canaries/*.py")))
        if options.file in (None, named(file))
        for mutant in mutants(file)
        if options.lines is None or _in_lines(mutant, options.lines)
    ][:: options.sample]
    if options.list:
        print(*chosen, f"{len(chosen)} mutants", sep="\n")
        return
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # What is slow to import, and needed in every fork.
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401
    import torch
    import torch._dynamo

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # else collections in the forks would copy all memory
    started = time.perf_counter()
    results: list[tuple[Mutant, str]] = []
    for file, group in itertools.groupby(chosen, key=lambda mutant: mutant.file):
        results += _results(list(group), tests_for(file, own=options.own))
    _report(results, time.perf_counter() - started, options.sample)


def _results(group: list[Mutant], runs: list[list[str]]) -> Iterator[tuple[Mutant, str]]:
    """What became of each mutant of a file: the first run of tests that fails decides."""
    limits = []
    for tests in runs:
        clock, processor = time.perf_counter(), _children()
        if run(None, tests) != "survived":
            sys.exit(f"pytest {shlex.join(tests)} fails without any mutant: mend it first")
        took = _children() - processor, time.perf_counter() - clock
        limits.append(Limit(10 + 5 * int(took[0]), 60 + 10 * int(took[1])))
    for number, mutant in enumerate(group, 1):
        words = (run(mutant, *pair) for pair in zip(runs, limits, strict=True))
        word = next((word for word in words if word != "survived"), "survived")
        print(f"[{number}/{len(group)}] {word:8}  {mutant}", file=sys.stderr, flush=True)
        yield mutant, word


def _children() -> float:
    """Seconds of the processor that the forks so far have taken."""
    times = os.times()
    return times.children_user + times.children_system


def _report(results: list[tuple[Mutant, str]], seconds: float, sample: int) -> None:
    print(f"{'file':<20}{'mutants':>8}{'killed':>8}{'share':>8}")
    for name in [*sorted({named(mutant.file) for mutant, _ in results}), None]:
        words = [word for mutant, word in results if name in (None, named(mutant.file))]
        killed = len(words) - words.count("survived")
        print(f"{name or 'all':<20}{len(words):>8}{killed:>8}{killed / max(len(words), 1):>8.1%}")
    survivors = [mutant for mutant, word in results if word == "survived"]
    print(f"\nsurvivors ({len(survivors)}):")
    print(*survivors, sep="\n")
    which = "all mutants" if sample == 1 else f"one mutant in {sample}"
    hung = sum(word == "hung" for _, word in results)
    average = seconds / max(len(results), 1)
    print(f"\n{which}, {hung} of the killed hung; {seconds / 60:.0f} minutes, {average:.1f} s each")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--file", help="only this file of the room: gradients.py")
    parser.add_argument("--lines", help="only these lines: gradients.py:40-60")
    parser.add_argument("--own", action="store_true", help="only the file's own tests: quicker")
    parser.add_argument("--sample", type=int, default=1, metavar="K", help="every K-th mutant")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    return parser.parse_args()


def _in_lines(mutant: Mutant, lines: str) -> bool:
    name, _, span = lines.partition(":")
    first, _, last = span.partition("-")
    return named(mutant.file) == name and int(first) <= mutant.line <= int(last or first)


if __name__ == "__main__":
    main()
