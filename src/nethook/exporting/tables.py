"""A run as tables of columns, a piece at a time: a long run is never in memory as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from nethook.runs.format.schema import PHASES
from nethook.runs.reading.run import Run

Columns = dict[str, Any]  # name -> a list or an array, all of one length

_CHUNK: Final = 64  # series whose records lie together


def tables(run: Run) -> dict[str, Iterator[Columns]]:
    """Name of a table -> its pieces."""
    return {
        "series": _series(run),
        "scalars": _scalars(run),
        "loss_curves": _loss_curves(run),
        "sites": _once(
            {
                "address": [site.address for site in run.sites],
                "kind": [site.kind for site in run.sites],
                "info": [_json(site.info) for site in run.sites],
            }
        ),
        "losses": _once(
            {
                "name": [loss.name for loss in run.losses],
                "step": [loss.step for loss in run.losses],
                "phase": [loss.phase for loss in run.losses],
                "rank": [loss.rank for loss in run.losses],
                "data": [_json(loss.data) for loss in run.losses],
            }
        ),
        "events": _once(
            {
                "step": [event.step for event in run.events],
                "time": [event.time for event in run.events],
                "kind": [event.kind for event in run.events],
                "address": [event.address for event in run.events],
                "message": [event.message for event in run.events],
                "data": [_json(event.data) for event in run.events],
                "repeats": [event.repeats for event in run.events],
                "rank": [event.rank for event in run.events],
            }
        ),
        "findings": _once(_findings(run)),
    }


def _once(columns: Columns) -> Iterator[Columns]:
    yield columns


def _series(run: Run) -> Iterator[Columns]:
    keys = [(info.address, info.quantity) for info in run.catalogue]
    for phase in PHASES:
        for start in range(0, len(keys), _CHUNK):
            pieces: dict[str, list[Any]] = {}
            for series in run.many(keys[start : start + _CHUNK], phase):
                seen = series.seen > 0
                count = int(seen.sum())
                if not count:
                    continue
                mine: Columns = {
                    "address": [series.address] * count,
                    "quantity": [series.quantity] * count,
                    "phase": [phase] * count,
                    **{name: column[seen] for name, column in series.columns().items()},
                }
                for name, column in mine.items():
                    pieces.setdefault(name, []).append(column)
            if pieces:
                yield {name: _joined(parts) for name, parts in pieces.items()}


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], list):
        return [entry for piece in parts for entry in piece]
    return np.concatenate(parts)


def _scalars(run: Run) -> Iterator[Columns]:
    for name, scalar in run.scalars.items():
        if len(scalar):
            yield {
                "name": [name] * len(scalar),
                "step": scalar.step,
                "time": scalar.time,
                "value": scalar.value,
            }


def _loss_curves(run: Run) -> Iterator[Columns]:
    """Each loss that was seen, as it is shown everywhere (`shown`), and what it is made of."""
    for phase in ("train", "eval"):
        for name, curve in run.loss_curves(phase).items():
            yield {
                "name": [name] * len(curve),
                "phase": [phase] * len(curve),
                "counted": [curve.shown_as] * len(curve),
                **curve.columns(),
            }


def _findings(run: Run) -> Columns:
    findings = run.findings
    texts = ("code", "severity", "message", "fix")
    columns: Columns = {
        name: [str(finding.get(name, "")) for finding in findings] for name in texts
    }
    for name in ("first_step", "last_step"):
        columns[name] = [_step(finding.get(name)) for finding in findings]
    for name in ("sites", "lines", "evidence", "consequences"):
        columns[name] = [_json(finding.get(name)) for finding in findings]
    return columns


def _step(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and abs(value) < 1 << 53 else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
