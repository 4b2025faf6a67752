"""The scripts of tests/scripts, each with two versions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tools.golden.comparing import (
    THINNED_FIELDS,
    Difference,
    compared,
    keep_common_spans,
    keep_what_both_measured,
)
from tools.golden.recording import recorded

# Windows that a writer was too slow for are merged with the next: that run is made again.
LAYOUT: Final = re.compile(r"\.series\..*\.windows\.\d+-\d+$")
TRIES: Final = 4


def commands(chosen: list[str]) -> list[str]:
    """The scripts, with their arguments, as the tests run them."""
    from tests.running.scripts import CASES

    listed = [case.command for case in CASES]
    return [command for command in listed if not chosen or command.split()[0] in chosen]


def differences_of(command: str, base: Path, here: Path, budget: str) -> list[Difference]:
    """Runs a script with both versions; what differs, as far as it can be the same at all."""
    differences: list[Difference] = []
    for _ in range(TRIES):
        of_base, of_here = (recorded(command, sources, budget) for sources in (base, here))
        if budget != "none":
            keep_what_both_measured(of_base, of_here)
        keep_common_spans(of_base, of_here)
        differences = list(compared(of_base, of_here))
        if not of_base and not of_here:
            differences.append(("run", "neither version has recorded one"))
        if budget != "none":
            differences = [pair for pair in differences if not THINNED_FIELDS.search(pair[0])]
        if not any(LAYOUT.search(path) for path, _ in differences):
            break
    return differences
