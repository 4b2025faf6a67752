"""The verdict says what is in the run file, no more, in 80 columns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from nethook.running.verdict import _unseen, course, verdict_lines
from nethook.runs import names
from nethook.runs.reading.rank_file import Site
from nethook.runs.reading.run import Run, open_run
from nethook.text.paragraphs import WIDTH, Style
from tests.running.made import made

PLAIN = Style()


def text(run: Run, style: Style = PLAIN, **how: Any) -> str:
    with run:
        return "\n".join(verdict_lines(run, style, **how))


def test_what_ran_the_loss_and_the_cost(tmp_path: Path) -> None:
    assert text(made(tmp_path / "run.db")).splitlines() == [
        "Net, 3 layers, 3 steps, watching cost 2.1 %",
        "loss 2.5 → 0.25  (train.py:7, mean over batches)",
        "not judged: no diagnosis is recorded in this run",
    ]


def test_scores_of_evaluations(tmp_path: Path) -> None:
    scores = [("train.py:9", 1, 0.25), ("train.py:9", 2, 0.75), ("train.py:12", 2, 0.5)]
    lines = text(made(tmp_path / "run.db", scores=scores)).splitlines()
    assert lines[2:4] == [
        "evaluation accuracy 0.25 → 0.75  (train.py:9)",
        "evaluation accuracy 0.5  (train.py:12)",
    ]


def test_nothing_is_called_fine_unless_somebody_looked_at_enough(tmp_path: Path) -> None:
    assert "no problems" not in text(made(tmp_path / "one.db"))
    looked = made(tmp_path / "two.db", info={"diagnosis": {"checks": 40}})
    assert "too early to tell: 3 steps" in text(looked)
    enough = {"diagnosis": {"checks": 40}, "totals": {"steps": 300}}
    long = made(tmp_path / "three.db", info=enough)
    assert text(long).endswith("no problems found (40 checks, 300 steps)")


FINDING = {
    "code": "dead-units",
    "severity": "error",
    "sites": ["relu", "fc1", "fc2", "fc3", "fc4"],
    "first_step": 12,
    "last_step": 300,
    "evidence": {"dead_share": {"value": 0.92, "threshold": 0.5}, "windows": 7},
    "message": "92 % of the units of relu were silent over whole windows.",
    "fix": "Lower the learning rate: try 0.001 instead of 0.1.",
}


def test_findings_have_address_step_evidence_and_fix(tmp_path: Path) -> None:
    run = made(tmp_path / "run.db", findings=[FINDING], info={"diagnosis": {}})
    lines = text(run).splitlines()[2:]
    assert lines == [
        "1 error:",
        "  error: dead-units (relu, fc1, fc2 and 2 more; steps 12 to 300)",
        "    92 % of the units of relu were silent over whole windows.",
        "    evidence: dead_share 0.92 (limit 0.5), windows 7",
        "    fix: Lower the learning rate: try 0.001 instead of 0.1.",
    ]


def test_many_findings_are_counted(tmp_path: Path) -> None:
    run = made(tmp_path / "run.db", findings=[{**FINDING, "first_step": n} for n in range(20)])
    assert text(run).splitlines()[-1] == "  and 8 more"


def test_the_first_nan_and_what_failed_are_named(tmp_path: Path) -> None:
    events = [
        (names.NON_FINITE, 2, "log(0) in loss", "fc2", {}),
        (names.NON_FINITE, 3, "a later one", "fc1", {}),
        (names.FAILED, 1, "grads failed and is off: ValueError: x", "", {}),
        (names.STEP_SKIPPED, 1, "skipped", "", {}),
    ]
    lines = text(made(tmp_path / "run.db", events=events)).splitlines()[2:]
    assert lines == [
        "a part of watching failed at step 1 and was switched off: grads failed and is",
        "  off: ValueError: x",
        "first NaN or infinity: step 2 at 'fc2', log(0) in loss",
        "1 step left out by the loss scaler",
        "not judged: no diagnosis is recorded in this run",
    ]


def test_units_that_are_silent_for_long_are_counted(tmp_path: Path) -> None:
    longer = [0.2] * 20
    assert "never active" not in text(made(tmp_path / "one.db", longer=longer))
    assert "never active" not in text(made(tmp_path / "short.db", silent=True))
    line = text(made(tmp_path / "two.db", longer=longer, silent=True)).splitlines()[-2]
    assert line == "units that were dead all through the last quarter: 3 of 4 of 'relu'"


def test_a_crash_says_what_was_just_before(tmp_path: Path) -> None:
    shown = text(made(tmp_path / "run.db"), error="RuntimeError: shapes do not fit")
    assert shown.splitlines()[2:] == [
        "crashed: RuntimeError: shapes do not fit (after 3 steps)",
        "just before: loss (train.py:7) 2.5, 1.5, 0.25; gradient norm 5, 3, 0.5",
    ]
    stopped = text(open_run(tmp_path / "run.db"), error="KeyboardInterrupt", interrupted=True)
    assert "interrupted: by Ctrl-C after 3 steps" in stopped


def test_colours_are_only_there_when_asked_for(tmp_path: Path) -> None:
    plain = text(made(tmp_path / "run.db", findings=[FINDING]))
    coloured = text(open_run(tmp_path / "run.db"), Style(colour=True))
    assert "\x1b" not in plain
    assert "\x1b[31merror\x1b[0m: dead-units" in coloured
    for code in ("\x1b[31m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


HOSTILE = "\x1b[2J\x1b]0;title\x07\r\u202e" + "x" * 300 + " " + "word " * 60


@pytest.mark.parametrize("colour", [False, True])
def test_hostile_texts_do_no_harm_and_fit(tmp_path: Path, colour: bool) -> None:
    finding = {
        "code": HOSTILE,
        "severity": HOSTILE,
        "sites": [HOSTILE, {"no": "text"}],
        "first_step": HOSTILE,
        "evidence": {HOSTILE: HOSTILE, "deep": {"value": [HOSTILE]}},
        "message": HOSTILE,
        "fix": HOSTILE,
    }
    events = [(names.NON_FINITE, 1, HOSTILE, HOSTILE, {HOSTILE: HOSTILE})]
    info = {
        "models": {HOSTILE: {"type": HOSTILE}, "2": HOSTILE, "3": [HOSTILE], "4": None, "5": 1},
        "overhead": HOSTILE,
        "totals": HOSTILE,
        "clock": HOSTILE,
    }
    run = made(tmp_path / "run.db", findings=[finding, {}], events=events, info=info)
    shown = text(run, Style(colour=colour))
    for code in ("\x1b[31m", "\x1b[33m", "\x1b[36m", "\x1b[32m", "\x1b[0m"):
        shown = shown.replace(code, "")
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert max(len(line) for line in shown.splitlines()) <= WIDTH


def test_numbers_that_are_none_do_no_harm(tmp_path: Path) -> None:
    run = made(tmp_path / "run.db", info={"overhead": math.nan, "models": 3, "totals": {}})
    assert text(run).startswith("3 layers, 3 steps")


def test_the_steady_cost_and_the_seconds_in_all_are_told(tmp_path: Path) -> None:
    cost = {"steady_overhead": 0.034, "total_seconds": 0.42}
    run = made(tmp_path / "run.db", info={"cost": cost})
    shown = " ".join(text(run).split())
    assert "3 steps, watching cost 3.4 % per step and 0.4 s in all loss" in shown
    run = made(tmp_path / "short.db", info={"cost": {**cost, "steady_overhead": None}})
    assert text(run).startswith("Net, 3 layers, 3 steps, watching cost 0.4 s in all\n")


def test_the_course_is_one_line(tmp_path: Path) -> None:
    with made(tmp_path / "run.db") as run:
        assert course(run) == [
            "nethook: step 3", "loss 0.25", "gradient norm 0.5", "watching cost 2.1 %",
        ]  # fmt: skip


def test_the_course_names_the_first_finding(tmp_path: Path) -> None:
    note = {**FINDING, "severity": "info", "code": "note"}
    with made(tmp_path / "run.db", findings=[note, FINDING, FINDING]) as run:
        assert course(run)[2] == "error: dead-units and 1 more"
    with made(tmp_path / "calm.db", findings=[note]) as run:
        assert not any("note" in part for part in course(run))


def test_why_no_layer_was_seen() -> None:
    never = {"leaf": True, "calls": {"train": 0, "eval": 0, "aux": 0}}
    lines = "\n".join(_unseen([Site("fc", "Linear", never)], 3, PLAIN))
    assert "compiled code" in lines
    lines = "\n".join(_unseen([Site("_torch_params", "ParameterDict", never)], 3, PLAIN))
    assert "has none as submodules" in lines
    assert "compiled" not in lines
    idle = {"forwards": 0, "backwards": 0}
    lines = "\n".join(_unseen([Site("fc", "Linear", never)], 3, PLAIN, idle))
    assert "the model was not called" in lines
    assert "compiled" not in lines
    loose = [Site("", "LooseTensors", {}), Site("W", "Parameter", never)]
    lines = "\n".join(_unseen(loose, 3, PLAIN))
    assert "the tensors that are trained belong to no module" in " ".join(lines.split())
    assert "compiled" not in lines
