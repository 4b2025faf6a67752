"""Loss against loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from nethook.running.trying.comparing import Course, Losses, compare


def course(values: Any, start: int = 0) -> Course:
    value = np.asarray(values, dtype=float)
    return Course(np.arange(start, start + len(value)), value)


def train(
    values: Any, *, crashed: bool = False, evaluated: dict[int, float] | None = None
) -> Losses:
    passes = evaluated or {}
    taken = Course(np.array([*passes], dtype=np.int64), np.array([*passes.values()]))
    at = {"eval.py:1": taken} if passes else {}
    return Losses({"train.py:1": course(values)}, at, crashed)


FLAT = [2.0] * 40
NOISE = np.random.default_rng(0).normal(size=40)


@pytest.mark.parametrize(
    ("before", "after", "helped"),
    [
        (FLAT, [1.0] * 40, True),
        (FLAT, [1.95] * 40, False),  # less than a twentieth
        (FLAT, [3.0] * 40, False),
        (2 + NOISE, 1.8 + NOISE[::-1], False),  # within its noise
        ([-1.0] * 40, [-2.0] * 40, True),  # a likelihood
        ([*FLAT[:30], *[math.nan] * 10], FLAT, True),
        (FLAT, [*FLAT[:30], *[math.inf] * 10], False),
        ([math.nan] * 40, [math.nan] * 40, False),
    ],
)
def test_the_last_quarter_of_the_steps_decides(before: Any, after: Any, helped: bool) -> None:
    assert compare(train(before), train(after), "train").helped is helped


def test_only_steps_that_both_have_made_count() -> None:
    long = [*np.linspace(2, 1, 20), *[0.0] * 80]
    compared = compare(train(np.linspace(2, 1, 20)), train(long), "train")
    assert compared.steps == 20
    assert compared.train is not None
    assert compared.train.before == compared.train.after
    assert compared.helped is False


def test_a_script_that_crashed_has_no_loss() -> None:
    compared = compare(train([9.0] * 12, crashed=True), train(FLAT), "train")
    assert compared.steps == 40
    assert compared.helped is True
    assert compared.why == "as it is, the script ends with an error"
    assert compare(train(FLAT), train([0.1] * 12, crashed=True), "train").helped is False


def test_a_change_that_harms_evaluations_did_not_help() -> None:
    one = train(FLAT, evaluated={39: 1.0})
    assert compare(one, train([1.0] * 40, evaluated={39: 1.5}), "train").helped is False
    assert compare(one, train([1.0] * 40, evaluated={39: 0.9}), "train").helped is True


def test_evaluations_judge_where_they_should() -> None:
    one = train(FLAT, evaluated={0: 2.0, 20: 1.0})
    other = train([3.0] * 40, evaluated={0: 2.0, 20: 0.5, 40: 0.1})
    compared = compare(one, other, "eval")
    assert compared.helped is True
    assert compared.eval is not None
    assert (compared.eval.before, compared.eval.after) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("before", "after", "judge", "why"),
    [
        (train(FLAT), train(FLAT), "eval", "no evaluation with a loss was seen in both trials"),
        (train(FLAT), Losses({"other.py:1": course(FLAT)}, {}), "train", "no training loss was"),
        (train([1.0] * 2), train(FLAT), "train", "there were 2 steps to compare"),
        # An evaluation before the first step says nothing of a change.
        (train(FLAT, evaluated={0: 1}), train(FLAT, evaluated={0: 2}), "eval", "no evaluation"),
    ],
)
def test_nothing_is_said_without_losses(
    before: Losses, after: Losses, judge: Any, why: str
) -> None:
    compared = compare(before, after, judge)
    assert compared.helped is None
    assert compared.why.startswith(why)


def test_of_several_losses_none_may_get_worse() -> None:
    one = Losses({"a": course(FLAT), "b": course(FLAT)}, {})
    worse = Losses({"a": course([1.0] * 40), "b": course([3.0] * 40)}, {})
    better = Losses({"a": course(FLAT), "b": course([1.0] * 40)}, {})
    assert compare(one, worse, "train").helped is False
    assert compare(one, better, "train").helped is True
