"""Fixes that were tried, as text."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nethook.text.tried_lines import tried_by_code, tried_line

TRIED = {
    "code": "learning-rate-too-high",
    "change": "learning rate 0.1 → 0.001",
    "steps": 200,
    "train": [2.3125, 0.42],
    "eval": None,
    "judged_by": "train",
    "helped": True,
    "why": "",
}


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({}, "learning rate 0.1 → 0.001: training loss after 200 steps 2.31 → 0.42. It helped."),
        (
            {"helped": False, "eval": [1.0, 2.0]},
            (
                "learning rate 0.1 → 0.001: training loss after 200 steps 2.31 → 0.42, "
                "evaluation loss 1 → 2. It did not help."
            ),
        ),
        (
            {"judged_by": "eval", "eval": [1.0, 0.5]},
            (
                "learning rate 0.1 → 0.001: evaluation loss after 200 steps 1 → 0.5, training loss "
                "2.31 → 0.42. It helped."
            ),
        ),
        (
            {"train": [math.nan, 0.5], "why": "as it is, the script ends with an error"},
            (
                "learning rate 0.1 → 0.001: training loss after 200 steps nan → 0.5; as it is, the "
                "script ends with an error. It helped."
            ),
        ),
        (
            {"helped": None, "why": "no optimizer stepped"},
            "learning rate 0.1 → 0.001: not judged: no optimizer stepped.",
        ),
    ],
)
def test_a_trial_in_words(other: dict[str, Any], line: str) -> None:
    assert tried_line({**TRIED, **other}) == line


def test_a_file_may_say_anything() -> None:
    assert tried_by_code(None) == {}
    assert tried_by_code(["x", 3, {"helped": True, "steps": "x", "train": [1, "y"]}]) == {
        "": ": no loss was seen. It helped."
    }
    assert list(tried_by_code([TRIED])) == ["learning-rate-too-high"]
