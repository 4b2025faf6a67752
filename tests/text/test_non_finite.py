"""The first NaN in a line."""

from __future__ import annotations

import pytest

from nethook.text.non_finite import non_finite_line

MADE = {"operation": "fc/log#0", "source": "a.py:9 in forward", "reason": "log of 0"}
SHOWN = "nethook replay shows it."


@pytest.mark.parametrize(
    ("message", "address", "data", "line"),
    [
        ("x", "fc", {"replayed": MADE}, f"step 7, fc/log#0 at a.py:9: log of 0. {SHOWN}"),
        ("x", "fc", {"replayed": {"operation": "fc/log#0"}}, f"step 7, fc/log#0. {SHOWN}"),
        ("log(0)", "fc", {}, "step 7 at 'fc', log(0)"),
        ("log(0)", "", {"replayed": 3}, "step 7, log(0)"),
        ("step 7: log(0) in fc", "fc", {}, "step 7: log(0) in fc"),
    ],
)
def test_the_line(message: str, address: str, data: dict[str, object], line: str) -> None:
    assert non_finite_line(7, address, message, data) == f"first NaN or infinity: {line}"
