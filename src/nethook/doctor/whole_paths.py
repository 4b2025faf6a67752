"""Lines of findings with the whole path of their file, where the run knows it: to be clicked on.

Most lines are recorded as `train.py:42`, which is how sentences name them; a loss knows the whole
path of its file, and the optimizer is usually made in the same one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from nethook.doctor.finding import Finding
from nethook.doctor.history import History

_LIBRARIES: Final = frozenset({"site-packages", "dist-packages"})


def with_whole_paths(findings: Sequence[Finding], history: History) -> list[Finding]:
    """The findings, and what they lead to, with lines that an editor finds."""
    known = _files(history)
    return [_of(finding, known) for finding in findings] if known else list(findings)


def _files(history: History) -> dict[str, str]:
    """Name of a file -> its path; a name that two files have is left out."""
    found: dict[str, set[str]] = {}
    for phase in ("train", "eval"):
        for record in history.records(phase):
            path = str(record.fact("source") or "").rpartition(":")[0]
            parts = PurePath(path.replace("\\", "/")).parts
            name = parts[-1] if parts else ""
            # A library's file may have the name of one of the script's.
            if len(parts) > 1 and not _LIBRARIES.intersection(parts):
                found.setdefault(name, set()).add(path)
    return {name: paths.pop() for name, paths in found.items() if len(paths) == 1}


def _of(finding: Finding, known: Mapping[str, str]) -> Finding:
    lines = []
    for line in finding.lines:
        name, colon, number = line.rpartition(":")
        lines.append(f"{known.get(name, name)}{colon}{number}")
    below = tuple(_of(one, known) for one in finding.consequences)
    return dataclasses.replace(finding, lines=tuple(dict.fromkeys(lines)), consequences=below)
