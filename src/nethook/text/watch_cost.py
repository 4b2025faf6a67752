"""What watching has cost, in words: the same in a terminal, on the page and in a report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from nethook.text.numbers import seconds

_SOON: Final = 10.0
"""Seconds of training before which nobody can say what one more step costs: the start is dear, and
what is measured becomes rarer all the time."""


def watch_cost(info: Mapping[str, Any]) -> str:
    """`2.1 % per step and 0.4 s in all`; "" where the run does not say.

    The percentage is the steady one: what one more step would cost. A run of a few seconds has not
    come so far, and its seconds are all that can be said. A run of nethook 0.1 has one number for
    opening and steady steps together: `2.1 %`.

    Arguments:
        info: of a run; its file may say anything.
    """
    cost = info.get("cost")
    if not isinstance(cost, Mapping):
        overall = _number(info.get("overhead"))
        return "" if overall is None else _percent(overall)
    steady, total = _number(cost.get("steady_overhead")), _number(cost.get("total_seconds"))
    lasted = _number(cost.get("seconds"))
    parts = []
    if steady is not None and (lasted is None or lasted >= _SOON):
        parts.append(f"{_percent(steady)} per step")
    if total is not None:
        parts.append(f"{_seconds(total)} in all")
    return " and ".join(parts)


def watch_cost_parts(info: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where the seconds went, each with its name; none where the run does not say."""
    cost = info.get("cost")
    if not isinstance(cost, Mapping):
        return []
    parts = []
    for name in ("start-up", "opening", "steady", "closing"):
        value = _number(cost.get(f"{name.replace('-', '_')}_seconds"))
        if value is not None:
            parts.append((name, _seconds(value)))
    return parts


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return max(0.0, float(value))


def _percent(value: float) -> str:
    percent = 100 * value
    return f"{percent:,.1f} %" if percent >= 0.05 else "less than 0.1 %"


def _seconds(value: float) -> str:
    """Not more exact than it can be felt."""
    return "less than 0.1 s" if value < 0.05 else seconds(round(value, 1))
