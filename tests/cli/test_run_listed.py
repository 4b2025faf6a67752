"""Completing a command line: the options of `nethook run` are those of its parser, and no torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import nethook
from nethook.cli.commands.run import parser

# Completing ends the process; what was imported is told on the way out.
COMMAND = """\
import atexit, sys
atexit.register(lambda: print("heavy:", *sorted({"torch", "numpy", "plotly"} & {*sys.modules})))
sys.argv = ["nethook"]
from nethook.cli.entry import main
main()
"""


def completed(words: str) -> list[str]:
    """What bash is offered behind these words, and which heavy modules were imported."""
    before = words.split(" ")
    environment = {
        **os.environ,
        "_NETHOOK_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(before) - 1),
        "PYTHONPATH": str(Path(nethook.__file__).parents[1]),
    }
    done = subprocess.run(
        [sys.executable, "-c", COMMAND], env=environment, capture_output=True, text=True, check=True
    )
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("nethook di", ["diagnose", "diff"]),
        ("nethook run --fail-on ", ["info", "warning", "error"]),
        ("nethook export x.db --format t", ["tensorboard"]),
        ("nethook run tr", []),  # a shell offers files then
    ],
)
def test_what_is_offered_and_that_it_is_quick(words: str, offered: list[str]) -> None:
    assert completed(words) == [*offered, "heavy:"]


def test_every_option_of_run_is_offered() -> None:
    words = [word for action in parser()._actions for word in action.option_strings]
    ours = [word for word in words if word.startswith("--") and word != "--help"]
    assert len(ours) > 15
    assert sorted(completed("nethook run --")[:-1]) == sorted(ours)
