"""What was examined on copies of a model, in words: for the end of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from nethook.text.numbers import count, seconds
from nethook.text.paragraphs import Style, wrapped

MOST: Final = 3
"""Reasons that are listed."""
_TRIED: Final = ("fine", "found", "question")


def examined_lines(info: Mapping[str, Any], style: Style | None = None) -> Iterator[str]:
    """`examined in 0.4 s: 5 experiments`, and what was not examined, with reasons.

    Arguments:
        info: of a run; its file may say anything. One that was not to be examined has no line.
        style: colours and width.
    """
    about = info.get("examination")
    if not isinstance(about, Mapping):
        return
    results = [one for one in _listed(info.get("examined")) if isinstance(one, Mapping)]
    tried = sum(one.get("outcome") in _TRIED for one in results)
    if tried:
        took = about.get("seconds")
        known = isinstance(took, int | float) and math.isfinite(took)
        how_long = f" in {_seconds(took)}" if known else ""
        yield from wrapped(f"examined{how_long}: {count(tried, 'experiment')} on copies", style)
    failed = [one for one in results if one.get("outcome") == "failed"]
    shown = [str(reason) for reason in _listed(about.get("not_examined"))]
    shown += [f"{one.get('experiment')} failed ({one.get('reason')})" for one in failed]
    if shown:
        more = f" and {len(shown) - MOST} more" if len(shown) > MOST else ""
        yield from wrapped(f"not examined: {'; '.join(shown[:MOST])}{more}", style)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _seconds(value: Any) -> str:
    """Not more exact than it can be felt."""
    return "less than 0.1 s" if value < 0.05 else seconds(round(float(value), 1))
