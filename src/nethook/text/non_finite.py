"""The first NaN or infinity of a run in a line: when it came, from where, and what made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def non_finite_line(step: int, address: str, message: str, data: Mapping[str, Any]) -> str:
    """The line for an event of the run file; `data` has the operation where it was found."""
    if made := _operation(data):
        return f"first NaN or infinity: step {step}, {made}"
    # The message of the flight recorder names step and place.
    where = f" at {address!r}" if address else ""
    has_step = message.startswith(f"step {step}")
    return f"first NaN or infinity: {'' if has_step else f'step {step}{where}, '}{message}"


def _operation(data: Mapping[str, Any]) -> str:
    """The operation that made it, where it was found when that happened."""
    replayed = data.get("replayed")
    if not isinstance(replayed, Mapping) or not replayed.get("operation"):
        return ""
    source = str(replayed.get("source") or "").partition(" in ")[0]
    where = f" at {source}" if source else ""
    reason = f": {replayed['reason']}" if replayed.get("reason") else ""
    return f"{replayed['operation']}{where}{reason}. nethook replay shows it."
