"""Whether the name of a new run belongs to an earlier one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from nethook.errors import RunFileError
from nethook.runs.format.owner import is_alive
from nethook.runs.launch import launch
from nethook.runs.paths import is_there, rank_files
from nethook.runs.reading.safe_sqlite import GuardedFile
from nethook.runs.stubs import is_stub


def is_taken(path: Path, rank: int) -> bool:
    """Whether a run that a time or an identity names must be called otherwise.

    Either this rank has a file of that name; or another rank has one, of an earlier launch with the
    same identity. Ranks of this launch are alive.
    """
    if is_there(path, rank):
        return True
    if not launch().identity:
        return False
    other = next(iter(rank_files(path).values()), None)
    return other is not None and _has_ended(other)


def facts_of(path: Path, *names: str) -> dict[str, Any]:
    """Some facts about a run, by name, without reading anything else of it."""
    with closing(GuardedFile(path)) as file:
        return file.facts(*names)


def _has_ended(path: Path) -> bool:
    if is_stub(path):
        return False  # it is only being made
    try:
        facts = facts_of(path, "writer", "beat", "finished")
    except RunFileError:
        return True  # damaged or foreign
    return bool(facts.get("finished")) or not is_alive(facts.get("writer"), facts.get("beat"))
