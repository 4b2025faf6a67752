"""What watching has cost, in words."""

from __future__ import annotations

import math

import pytest

from nethook.text.watch_cost import watch_cost, watch_cost_parts


@pytest.mark.parametrize(
    ("info", "said"),
    [
        (
            {"cost": {"steady_overhead": 0.0214, "total_seconds": 0.44}, "overhead": 0.5},
            "2.1 % per step and 0.4 s in all",
        ),
        ({"cost": {"steady_overhead": None, "total_seconds": 0.44}}, "0.4 s in all"),
        # A few seconds do not tell what one more step costs.
        ({"cost": {"steady_overhead": 0.12, "total_seconds": 0.4, "seconds": 3.2}}, "0.4 s in all"),
        (
            {"cost": {"steady_overhead": 0.12, "total_seconds": 1.4, "seconds": 11.0}},
            "12.0 % per step and 1.4 s in all",
        ),
        (
            {"cost": {"steady_overhead": 1e-5, "total_seconds": 1e-3}},
            "less than 0.1 % per step and less than 0.1 s in all",
        ),
        (
            {"cost": {"steady_overhead": 12.5, "total_seconds": 125.0}},
            "1,250.0 % per step and 2 min 5 s in all",
        ),
        ({"overhead": 0.0214}, "2.1 %"),  # a run of nethook 0.1
        ({"overhead": -0.1}, "less than 0.1 %"),
        ({}, ""),
        ({"cost": {}}, ""),
        ({"cost": {"steady_overhead": math.nan, "total_seconds": math.inf}}, ""),
        ({"cost": {"steady_overhead": "\x1b[2J", "total_seconds": True}}, ""),
        ({"overhead": "\x1b[2J"}, ""),
        ({"cost": 3, "overhead": math.nan}, ""),
    ],
)
def test_the_text_of_a_cost(info, said):
    assert watch_cost(info) == said


def test_the_parts_of_a_cost():
    cost = {"start_up_seconds": 0.21, "opening_seconds": 0.1, "steady_seconds": 61, "every": 4}
    assert watch_cost_parts({"cost": cost}) == [
        ("start-up", "0.2 s"),
        ("opening", "0.1 s"),
        ("steady", "1 min 1 s"),
    ]
    assert watch_cost_parts({"overhead": 0.1}) == []
    assert watch_cost_parts({"cost": {"opening_seconds": "\x1b[2J"}}) == []
