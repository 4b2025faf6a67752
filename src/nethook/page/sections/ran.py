"""What ran: the command, versions, devices and settings; ranks; what happened."""

from __future__ import annotations

from typing import Any, Final

from nethook.page.section import Section, Subject
from nethook.page.sections.about import events_of, ran_of

_STATES: Final = {
    "open": ("live", "info"),
    "finished": ("finished", "quiet"),
    "died": ("cut off", "warning"),
}
_RANKS: Final = 200


def ran(subject: Subject) -> Section:
    """The section of what ran."""
    return Section("ran", subject.tag, lambda: _data(subject))


def _data(subject: Subject) -> dict[str, Any]:
    reading = subject.reading
    return {
        "rows": ran_of(reading),
        "events": events_of(reading),
        "ranks": [
            (rank, *_STATES.get(rank.state, (rank.state, "error")))
            for rank in reading.ranks[:_RANKS]
        ],
    }
