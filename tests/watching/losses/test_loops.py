"""Lines from which a library runs the loop, told from lines that pass through one."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any

import pytest

import nethook
from nethook.hooks.process.source_line import line_of_script
from nethook.watching.losses.loops import Loops

# Whose code it is that runs is told by its file: this is taken for a part of a library,
TRAINER = """
def fit(steps, call, backward):
    for _ in range(steps):
        call()
        backward()

def helper(backward):
    backward()
"""
# and this for what nethook does at a call of a model, and at a backward pass.
HOOKS = """
def call():
    if loops.unsure is not None:
        loops.called()

def backward():
    line = line_of_script()
    if line not in seen:
        seen.append(line)
        firsts.append(loops.begins(line).line)
    assert loops.first(line).line in firsts
"""


def lines_of_losses(program: str) -> list[int]:
    """Which line of a program each new line that calls `backward` belongs to."""
    space: dict[str, Any] = {
        "loops": Loops(), "seen": [], "firsts": [], "line_of_script": line_of_script,
    }  # fmt: skip
    installed = Path(sysconfig.get_path("purelib"), "some_trainer.py")
    for text, file in ((TRAINER, installed), (HOOKS, nethook.__file__), (program, "train.py")):
        exec(compile(text, str(file), "exec"), space)
    return space["firsts"]


LOOP = "fit(3, call, backward)\n\nfit(3, call, backward)\n"
CALLED_BACK = """
def training_step():
    call()

fit(3, training_step, backward)
fit(3, training_step, backward)
"""
PASSING = """
for _ in range(3):
    call()
    helper(backward)
    helper(backward)
"""
PLAIN = "call()\nbackward()\ncall()\nbackward()\n"


@pytest.mark.parametrize(
    ("program", "lines"),
    [(LOOP, [1, 1]), (CALLED_BACK, [5, 5]), (PASSING, [4, 5]), (PLAIN, [2, 4])],
    ids=["loop", "called back", "passing", "plain"],
)
def test_which_lines_are_one_loss(program: str, lines: list[int]) -> None:
    assert lines_of_losses(program) == lines
