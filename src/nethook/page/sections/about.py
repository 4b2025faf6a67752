"""What is said of a run in words: when it ran, how far it came, what ran, what happened."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from nethook.figures.coverage import WHOLE, coverage
from nethook.figures.reading import Reading
from nethook.page.folder import state_of
from nethook.runs.reading.comparing.facts import facts_in_words
from nethook.runs.reading.layers import layers_that_ran
from nethook.runs.reading.losses.scores import shown_scores
from nethook.text.numbers import number, seconds, share, size

_EVENTS: Final = 200
_ENDS: Final = {"open": "running", "died": "cut off"} | {
    state: state for state in ("finished", "crashed", "interrupted", "missing")
}


def subtitle_of(reading: Reading) -> str:
    """When it ran, for how long, and how it ended."""
    info = reading.run.info
    parts = []
    started, finished = _time(info.get("started")), _time(info.get("finished"))
    if started is not None:
        parts.append(datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%d %H:%M UTC"))
        if finished is not None and finished >= started:
            several = f" in {len(info['sessions'])} sessions" if len(info["sessions"]) > 1 else ""
            parts.append(f"ran {seconds(_ran(info['sessions']))}{several}")
    parts.append(_ENDS.get(state_of(reading), "unknown"))
    return " · ".join(parts)


def facts_of(reading: Reading) -> list[tuple[str, str]]:
    """The numbers beside the verdict."""
    facts = [("steps", f"{reading.last_step + 1:,}")]
    several = len(reading.losses) > 2
    for phase in ("train", "eval"):
        for loss in [loss for loss in reading.losses if loss.phase == phase][:1]:
            name = loss.label + (f", {loss.name}" if several else "")
            ends = " → ".join(number(value, 4) for value in loss.ends)
            facts.append((name, f"{ends} ({loss.counted})"))
    score = next(iter(shown_scores(reading.scalars).values()), None)
    if score is not None:
        facts.append((score.label, " → ".join(number(value, 4) for value in score.ends)))
    parameters = _parameters(reading)
    if parameters:
        facts.append(("parameters", f"{parameters:,}"))
    facts.append(("layers", f"{len(layers_that_ran(reading.run.sites)):,}"))
    covered = coverage(reading)
    if covered is not None and covered < WHOLE:
        facts.append(("layers measured", f"in {share(covered)} of the steps"))
    if len(reading.ranks) > 1:
        facts.append(("ranks", f"{len(reading.ranks):,}"))
    return facts


def ran_of(reading: Reading) -> list[tuple[str, str]]:
    """Command, versions, devices and the like."""
    info = reading.run.info
    rows = [("file", f"{reading.run.path.name} ({size(reading.run.path.stat().st_size)})")]
    return [*rows, *facts_in_words(info).items()]


def events_of(reading: Reading) -> list[tuple[str, str, str, str]]:
    """Step, kind, site and message of what happened; never its data, which may hold values."""
    events = reading.run.events
    rows = [
        (f"{event.step:,}", event.kind, event.address, event.message) for event in events[:_EVENTS]
    ]
    if len(events) > _EVENTS:
        rows.append(("", "", "", f"… and {len(events) - _EVENTS:,} more"))
    return rows


def _parameters(reading: Reading) -> int:
    total = 0
    for site in reading.order.sites.values():
        elements = site.info.get("elements")
        if site.kind == "Parameter" and isinstance(elements, int) and 0 < elements < 1 << 53:
            total += elements
    return total


def _ran(sessions: list[dict[str, Any]]) -> float:
    """Seconds of all sessions, without what lies between them."""
    ends = [(_time(session.get("started")), _time(session.get("ended"))) for session in sessions]
    return sum(max(0.0, end - start) for start, end in ends if start and end)


def _time(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 < value < 1e11 else None
