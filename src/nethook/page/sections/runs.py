"""The list of runs: sorted, filtered, with columns of settings and metrics; groups of seeds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from nethook.page.filtering import Row, cell, matching, ordered
from nethook.page.folder import Entry, Folder, stamps_of
from nethook.page.groups import Group, group_names, groups_of, groups_spec
from nethook.page.section import Drawing, Section
from nethook.page.states import STATES
from nethook.page.summaries import Summaries, Summary
from nethook.page.urls import MOST_COMPARED, Place, link, run_link
from nethook.runs.reading.losses.scores import ACCURACY
from nethook.text.escape import shorten
from nethook.text.numbers import number, seconds

_PATIENCE: Final = 0.3  # seconds of one answer that go into reading runs; a thread reads the rest
_AT_ONCE: Final = 200  # runs on one page
_SHOWN: Final = 4  # columns of settings and metrics before any are chosen
_OFFERED: Final = 40
_FIRST: Final = ("loss", "evaluation loss", ACCURACY)
_FIXED: Final = ("run", "state", "changed", "steps", "verdict")
_GROUPS: Final = 60


def runs(folder: Folder, summaries: Summaries, where: Place) -> Section:
    """The section of all runs of a folder."""
    rows = _read(folder.entries(), summaries)
    shown = ordered(matching(rows, where.text("find")), where.text("sort"))
    told = [(entry.id, s and (s.stamp, s.state, age(s.changed))) for entry, s in shown]
    waiting = sum(summary is None for _, summary in rows)
    tag = repr((told, waiting, folder.left_out, sorted(where.query.items())))
    figures = {}
    if where.flag("group"):
        groups = groups_of([(entry, s) for entry, s in shown if s is not None])
        figures["groups"] = Drawing(tag, lambda: groups_spec(groups))
    return Section("runs", tag, lambda: _data(folder, rows, shown, where), figures)


def _read(entries: Sequence[Entry], summaries: Summaries) -> list[Row]:
    """What is known of each run: a few are read at once, the rest in a thread."""
    begin, rows, late = time.monotonic(), [], False
    stamps = stamps_of(entries)
    for entry in entries:
        summary = summaries.known(entry, stamps[entry.id])
        if summary is None and time.monotonic() - begin < _PATIENCE:
            summary = summaries.make(entry)
        elif summary is None:
            summary, late = summaries.last(entry), True
        rows.append((entry, summary))
    if late:
        summaries.read_ahead(entries)
    return rows


def _data(
    folder: Folder, rows: Sequence[Row], shown: Sequence[Row], where: Place
) -> dict[str, Any]:
    known = [summary for _, summary in rows if summary is not None]
    telling, same = columns_of(known)
    offered = [*telling, *same][:_OFFERED]
    asked = where.names("show")
    columns = [name for name in (telling[:_SHOWN] if asked is None else asked) if name in offered]
    first = min(where.number("from") or 0, max(0, len(shown) - 1))
    picked = [run for run in where.text("pick").split("~") if run][:MOST_COMPARED]
    grouped = where.flag("group")
    groups = groups_of([(entry, s) for entry, s in shown if s is not None]) if grouped else []
    page = list(shown[first : first + _AT_ONCE])
    return {
        "title": folder.title,
        "count": len(rows),
        "left_out": folder.left_out,
        "found": len(shown),
        "waiting": sum(summary is None for _, summary in rows),
        "find": where.text("find"),
        "offered": [(name, name in columns, _toggled(columns, name)) for name in offered],
        "heads": [_head(name, where) for name in (*_FIXED, *columns)],
        "rows": [] if grouped else [_row(*row, columns, picked) for row in page],
        "picked": len(picked),
        "compare": link("/compare", runs="~".join(picked)) if len(picked) > 1 else "",
        "pages": None if grouped else _pages(len(shown), first, where),
        "grouped": grouped,
        "groups": _group_rows(groups[:_GROUPS]),
        "states": STATES,
    }


def columns_of(known: Sequence[Summary]) -> tuple[list[str], list[str]]:
    """Columns that runs can be told apart by, losses first; and settings that all have alike."""
    metrics = list(dict.fromkeys(name for each in known for name in each.metrics))
    values: dict[str, set[str]] = {}
    for each in known:
        for name, value in each.settings.items():
            values.setdefault(name, set()).add(value)
    differing = [name for name, found in values.items() if len(found) > 1]
    same = [name for name in values if name not in differing]
    first = [name for name in metrics if name in _FIRST]
    rest = [name for name in metrics if name not in first]
    return [*first, *differing, *rest], same


def _toggled(columns: Sequence[str], name: str) -> str:
    """The choice of columns with one more, or without it."""
    kept = [column for column in columns if column != name]
    return "~".join(kept if name in columns else [*columns, name])


def _head(name: str, where: Place) -> tuple[str, str, str]:
    """A column: its name, what a click on it sorts by, and how it is sorted now."""
    now = where.text("sort")
    new = f"-{name}" if now == name else name
    how = {name: "ascending", f"-{name}": "descending"}.get(now, "none")
    return name, new, how


def _row(
    entry: Entry, summary: Summary | None, columns: Sequence[str], picked: Sequence[str]
) -> dict[str, Any]:
    others = [run for run in picked if run != entry.id]
    on = entry.id in picked
    return {
        "entry": entry,
        "to": run_link(entry.id),
        "summary": summary,
        "age": age(summary.changed) if summary is not None else "",
        "cells": [(name, _shown(cell(entry, summary, name))) for name in columns],
        "on": on,
        "pick": "~".join(others if on else [*picked, entry.id][-MOST_COMPARED:]),
    }


def _shown(value: str | float | None) -> str:
    if value is None:
        return ""
    return number(value, 4) if isinstance(value, float) else shorten(value, 24)


def _group_rows(groups: Sequence[Group]) -> list[dict[str, Any]]:
    names = group_names(groups)
    return [
        {
            "name": name,
            "count": len(group.runs),
            "mean": number(group.mean, 4) if group.losses else "",
            "std": number(group.std, 2) if len(group.losses) > 1 else "",
            "runs": [(entry.name, run_link(entry.id)) for entry, _ in group.runs[:20]],
            "more": max(0, len(group.runs) - 20),
        }
        for name, group in zip(names, groups, strict=True)
    ]


def _pages(all_of: int, start: int, where: Place) -> dict[str, Any] | None:
    if all_of <= _AT_ONCE:
        return None
    kept = {name: value for name, value in where.query.items() if name != "from"}
    before = link("/", **{**kept, "from": max(0, start - _AT_ONCE)}) if start else ""
    end = min(all_of, start + _AT_ONCE)
    after = link("/", **{**kept, "from": end}) if end < all_of else ""
    text = f"{start + 1:,} to {end:,} of {all_of:,}"
    return {"text": text, "newer": before, "older": after}


def age(moment: float) -> str:
    """How long ago something was, as a person would say it."""
    passed = max(0.0, time.time() - moment)
    if passed < 60:
        return "just now"
    if passed < 3 * 86400:
        return f"{_rough(passed)} ago"
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def _rough(passed: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if passed >= size:
            return f"{int(passed // size)} {unit}"
    return seconds(passed)
