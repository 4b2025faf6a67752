"""Which runs of the list are shown, and in which order: words to find, a column to sort by.

    sweep lr>0.01 state=crashed

A word must be in the name; `column=value`, `column<value`, `column>value` compare a column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from nethook.page.folder import Entry
from nethook.page.summaries import Summary

Row = tuple[Entry, Summary | None]

_TERM = re.compile(r"([^=<>]+)(<=|>=|=|<|>)(.*)", re.DOTALL)
_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


def cell(entry: Entry, summary: Summary | None, column: str) -> str | float | None:
    """What a run has in a column; None for nothing."""
    if column == "run":
        return entry.name
    if summary is None:
        return None
    own: dict[str, str | float] = {
        "state": summary.state, "changed": summary.changed, "steps": summary.steps,
        "verdict": summary.verdict,
    }  # fmt: skip
    if column in own:
        return own[column]
    if column in summary.metrics:
        return summary.metrics[column]
    return summary.settings.get(column)


def matching(rows: Sequence[Row], asked: str) -> list[Row]:
    """Those of the rows that fit all words."""
    words = asked.casefold().split()
    return [row for row in rows if all(_fits(row, word) for word in words)]


def _fits(row: Row, word: str) -> bool:
    term = _TERM.fullmatch(word)
    if term is None:
        return word in row[0].name.casefold()
    column, sign, wanted = term.groups()
    value = _any_case(row, column)
    if value is None:
        return word in row[0].name.casefold()  # a name may have a sign in it
    left, right = _number(value), _number(wanted)
    if left is not None and right is not None:
        return _COMPARED[sign](left, right)
    return sign == "=" and wanted in str(value).casefold()


def _any_case(row: Row, column: str) -> str | float | None:
    entry, summary = row
    if (found := cell(entry, summary, column)) is not None or summary is None:
        return found
    for name in (*summary.metrics, *summary.settings):
        if name.casefold().replace(" ", "_") == column:
            return cell(entry, summary, name)
    return None


def ordered(rows: Sequence[Row], by: str) -> list[Row]:
    """Rows sorted by a column, `-column` downwards; those without a value stand last."""
    column = by.removeprefix("-")
    if not column:
        return list(rows)
    keyed = [(cell(*row, column), row) for row in rows]
    known = [(value, row) for value, row in keyed if value is not None and not _is_nan(value)]
    rest = [row for value, row in keyed if value is None or _is_nan(value)]
    known.sort(key=lambda pair: _key(pair[0]), reverse=by.startswith("-"))
    return [row for _, row in known] + rest


def _key(value: str | float) -> tuple[int, float, str]:
    """Numbers before texts, and each among its own."""
    found = _number(value)
    return (0, found, "") if found is not None else (1, 0.0, str(value).casefold())


def _number(value: str | float) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _is_nan(value: str | float) -> bool:
    return isinstance(value, float) and math.isnan(value)
