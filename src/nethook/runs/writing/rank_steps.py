"""With which step a rank goes on, so that all ranks go on with the same one.

Ranks are killed at different moments, and nothing is exchanged while training: each looks at the
files of the others. The first ranks to go on choose the step that all of them have; the others see
in these files which one that was.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nethook.errors import RunFileError
from nethook.runs.format.owner import is_alive
from nethook.runs.paths import rank_files
from nethook.runs.reading.rank_file import RankFile
from nethook.runs.reading.sessions import last_finished_step, sessions_of


def common_step(path: Path, earlier: Mapping[str, Any], last_step: int) -> int:
    """The step that this rank goes on with.

    Arguments:
        path: of this rank.
        earlier: the facts that its file had; none where it is new.
        last_step: the last one that its file has.
    """
    last_step = last_finished_step(earlier, last_step)
    own = sessions_of(earlier, last_step)[-1]
    ended = own["ended"] if earlier else None
    later, same = [], [last_step + 1]
    for info, last in _others(path):
        session = sessions_of(info, last)[-1]
        started, first = session.get("started"), session.get("first_step")
        if not isinstance(first, int) or not isinstance(started, int | float):
            continue
        if not isinstance(ended, int | float) or started > ended:
            # It went on already, or this rank was not there in the last session.
            alive = is_alive(info.get("writer"), info.get("beat")) and not info.get("finished")
            later.append(first if alive else last + 1)
        elif first == own["first_step"]:
            same.append(last + 1)
    # What an earlier session has recorded is never dropped because of a rank that fell behind.
    return max(min(later or same), int(own["first_step"]) if earlier else 0)


def _others(path: Path) -> list[tuple[dict[str, Any], int]]:
    """Facts and last step of the files of other ranks."""
    others = []
    for other in rank_files(path).values():
        if other != path:
            try:
                file = RankFile(other)
            except RunFileError:
                continue  # gone, or not yet made
            try:
                info = file.info()
                others.append((info, last_finished_step(info, file.last_step())))
            except RunFileError:
                continue
            finally:
                file.close()
    return others
