"""Results of experiments, as rules read them."""

from __future__ import annotations

import math

from nethook.doctor.finding import Evidence
from nethook.doctor.signals.examined import (
    finding_of,
    first,
    lines,
    meant,
    number,
    numbers,
    since,
    text,
)
from tests.doctor.synthetic import Made


def test_a_fault_comes_before_a_question() -> None:
    made = Made().examined("a", "fine").examined("a", "question", x=1).examined("a", x=2)
    result = first(made.history(), "a")
    assert result is not None
    assert number(result, "x") == 2
    asked = first(made.history(), "a", x=1)
    assert asked is not None
    assert asked.outcome == "question"
    assert first(made.history(), "b") is None


def test_facts_of_any_kind() -> None:
    made = Made().examined("a", x="words", y=[1, "two", 3], lines=["train.py:1"], z=True)
    result = first(made.history(), "a")
    assert result is not None
    assert math.isnan(number(result, "x"))
    assert number(result, "missing", 3.0) == 3.0
    assert text(result, "x") == "words"
    assert text(result, "y") == ""
    assert numbers(result, "y") == [1, 3]
    assert lines(result) == ("train.py:1",)


def test_a_result_is_dated_by_the_step_that_was_examined() -> None:
    early, late = (first(Made().examined("a", step=at).history(), "a") for at in (2, 100))
    assert early is not None
    assert late is not None
    assert (since(early), since(late)) == (2, 100)


def test_the_line_of_the_backward_pass_is_the_last_resort() -> None:
    made = Made().examined("a")
    made.info["examined"][0]["loss"] = "train.py:9"
    result = first(made.history(), "a")
    assert result is not None
    assert lines(result) == ("train.py:9",)


def test_a_finding_of_a_result_is_dated_by_its_step() -> None:
    made = Made(200).loss([1.0] * 200)
    made.examined("x", "found", step=7, lines=["train.py:3"])
    made.examined("y", "question", "the task may be so", step=9)
    history = made.history()
    sure, asked = (first(history, name) for name in ("x", "y"))
    assert sure is not None
    assert asked is not None
    told = finding_of(history, sure, "some-code", "it is so.", "do this.", {"n": Evidence(1)})
    assert (told.severity, told.first_step, told.last_step) == ("error", 7, 199)
    assert told.lines == ("train.py:3",)
    assert meant(sure) == ""
    assert finding_of(history, asked, "some-code", "", "", {}).severity == "info"
    assert finding_of(history, asked, "some-code", "", "", {}, "warning").severity == "warning"
    assert meant(asked) == " Is that meant? The task may be so."
