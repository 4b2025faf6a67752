"""What a run knew of its sites before it was gone on with, and what it knows of them together.

A session counts from its own beginning; the run counts from the first session's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_COUNTED: Final = ("steps", "with_grad")
# At the first steps of a run: what the weights were before training had done anything to them.
_AT_THE_START: Final = (
    "rows", "distinct_rows", "distinct_grad_rows", "distinct_columns", "distinct_grad_columns",
)  # fmt: skip


def with_earlier(info: dict[str, Any], earlier: Any, first_step: int) -> dict[str, Any]:
    """The facts about a site of this session and of those before it.

    Arguments:
        info: what this session knows.
        earlier: what the file had when the session began.
        first_step: of this session; what happened from there on has happened anew.
    """
    if not isinstance(earlier, Mapping) or not earlier:
        return info
    made = dict(info)
    for name in _COUNTED:
        if name in info:
            made[name] = info[name] + _whole(earlier.get(name))
    if "calls" in info:
        made["calls"] = added(info["calls"], earlier.get("calls"))
    if "moved" in info:
        before = earlier.get("moved")
        before = before if isinstance(before, list) and len(before) == 2 else [0, 0]
        made["moved"] = [
            mine + _whole(old) for mine, old in zip(info["moved"], before, strict=True)
        ]
    if "modes" in info:
        made["modes"] = _modes(info["modes"], earlier.get("modes"), first_step)
    for name in _AT_THE_START:
        if name in earlier:
            made[name] = earlier[name]
    for name in ("first_call", "batch", "shape", "dtype", "device"):
        if name in earlier and name not in made:  # not called yet in this session
            made[name] = earlier[name]
    return made


def added(counts: Mapping[str, Any], earlier: Any) -> dict[str, Any]:
    """Counts by name, with those of before; a count may itself be counts by name."""
    before = earlier if isinstance(earlier, Mapping) else {}
    made: dict[str, Any] = {}
    for name in dict.fromkeys((*before, *counts)):
        mine, old = counts.get(name), before.get(name)
        if isinstance(mine, Mapping) or isinstance(old, Mapping):
            made[name] = added(mine if isinstance(mine, Mapping) else {}, old)
        else:
            made[name] = _whole(mine) + _whole(old)
    return made


def _modes(modes: list[Any], earlier: Any, first_step: int) -> list[Any]:
    """Every change of mode: [step, phase, mode]."""
    made = [
        change
        for change in (earlier if isinstance(earlier, list) else [])
        if isinstance(change, list) and len(change) == 3 and _whole(change[0]) < first_step
    ]
    for step, phase, mode in modes:
        of_phase = [change for change in made if change[1] == phase]
        if not of_phase or of_phase[-1][2] is not mode:
            made.append([step, phase, mode])
    return made


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
