"""The sessions of a run: the times that a process began it, or went on with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def sessions_of(info: Mapping[str, Any], last_step: int) -> list[dict[str, Any]]:
    """The sessions of a run that nobody writes: each with its start, its end and its steps.

    Arguments:
        info: facts about the run, also of a file that is older than sessions.
        last_step: the last one that is kept.
    """
    sessions = info.get("sessions")
    listed = sessions if isinstance(sessions, list) else []
    kept = [dict(session) for session in listed if isinstance(session, dict)]
    kept = kept or [{"started": info.get("started"), "first_step": 0}]
    if "ended" not in kept[-1]:
        finished = info.get("finished")
        kept[-1]["ended"] = finished or info.get("beat")
        kept[-1]["last_step"] = last_finished_step(info, last_step)
        kept[-1]["closed"] = bool(finished)
    return kept


def last_finished_step(info: Mapping[str, Any], last_step: int) -> int:
    """The last step that counts: the file may end with one that never came to its update.

    Arguments:
        info: facts about the run.
        last_step: the last one that is in the file.
    """
    return (
        last_step - 1 if last_step >= 0 and info.get("unfinished_step") == last_step else last_step
    )
