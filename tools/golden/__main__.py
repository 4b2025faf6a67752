"""Compares what two versions of nethook record of the same training scripts, field by field.

    python -m tools.golden v0.1.0                     all scripts of tests/scripts
    python -m tools.golden v0.1.0 plain.py gan.py     these
    python -m tools.golden v0.1.0 --budget 3%         with a budget: what is never thinned
    python -m tools.golden v0.1.0 --here v0.1.0       two runs of one version: what is noise?

Each script runs under `nethook run`, once with the sources of a revision and once with those of
this folder, in the same environment. Both run files are read by this folder's nethook and compared:
what ran, sites, every number of every series, histograms, active units, scalars, snapshots, losses,
findings, events. Left out are times and the words of events.

A script is `equal`; `changed`, where it differs in what `on_purpose` lists, with the reason;
or it `DIFFERS`, and then the exit code is 1: also where neither version has recorded a run. A
script of which the release recorded something wrong (`MENDED`) is compared with a later commit as
well. The last line counts each.
"""

# ruff: noqa: T201  (a program that prints for people)

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Final

from tools.golden.comparing import Difference
from tools.golden.on_purpose import MENDED, reason_of, result_of
from tools.golden.scripts import commands, differences_of
from tools.golden.sources import RELEASED, ROOT, commit_of, sources_of

SHOWN: Final = 12


def main() -> int:
    """Runs what was asked for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("base", help="the revision to compare with, such as v0.1.0")
    parser.add_argument("scripts", nargs="*", help="of tests/scripts; else all of them")
    parser.add_argument("--budget", default="none", help="as `nethook run --budget` takes it")
    parser.add_argument("--here", metavar="REVISION", help="a revision in place of this folder")
    options = parser.parse_args()
    commit = commit_of(options.base)
    here = sources_of(commit_of(options.here)) if options.here else ROOT / "src"
    counts: Counter[str] = Counter()
    for command in commands(options.scripts):
        differences = differences_of(command, sources_of(commit), here, options.budget)
        mended = MENDED.get(command.split()[0]) if commit == RELEASED["v0.1.0"] else None
        word = result_of(differences)
        if word == "DIFFERS" and mended is not None and not options.here:
            why, later = mended
            print(f"mended   {command}: {why}; against {later[:7]}:")
            counts["mended"] += 1
            before = sources_of(commit_of(later))
            differences = differences_of(command, before, here, options.budget)
            word = result_of(differences)
        counts[word] += 1
        print(f"{word:8} {command}", flush=True)
        show(differences)
    print("\n" + ", ".join(f"{number} {word}" for word, number in sorted(counts.items())))
    return 1 if counts["DIFFERS"] else 0


def show(differences: list[Difference]) -> None:
    """Prints what was changed on purpose, by reason, and what differs, field by field."""
    reasons = Counter(map(reason_of, differences))
    unexplained = reasons.pop(None, 0)
    for reason, number in reasons.items():
        print(f"         on purpose ({number}): {reason}")
    lines = [": ".join(difference) for difference in differences if not reason_of(difference)]
    for line in lines[:SHOWN]:
        print(f"         {line}")
    if unexplained > SHOWN:
        print(f"         and {unexplained - SHOWN} more")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
