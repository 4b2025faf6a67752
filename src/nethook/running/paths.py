"""Where a run goes: decided before the script can change the folder it works in."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nethook.errors import RunExistsError, RunFileError
from nethook.files import exists
from nethook.running.resumable import check_resumable, last_run
from nethook.runs.paths import STAMP, check_path, parent_started, rank_path
from nethook.runs.stubs import is_stub

_TITLE: Final = 50  # characters of a script's name in that of its run, each of up to 4 bytes


def run_file(
    to: str | None, title: str, *, resume: bool = False, arguments: Sequence[str] = ()
) -> str:
    """The absolute path of the run file of this process's run.

    Arguments:
        to: what was asked for; None for `runs/TITLE-TIME.db`, or with `resume` the last of these.
        title: the name of the run.
        resume: whether it goes on in a run that is there.
        arguments: of the script.

    Raises:
        RunExistsError: the file that was asked for is there already.
        RunFileError: it can never be written, it cannot be gone on with, or it is not clear which
            run is meant.
    """
    rank = _number("RANK")
    if to is not None:
        if resume and "{time}" in to:
            raise RunFileError(
                f"`to` must name one file with --resume; got {to!r}, which names a new file each "
                "time. Leave {time} out."
            )
        path = check_path(Path(to.replace("{time}", _stamp(launched()))), rank)
        own = rank_path(path, rank)
        if resume:
            check_resumable(own)
        elif exists(own) and not own.is_file():
            raise RunFileError(
                f"`to` must be a new file or a run; got {str(own)!r}, which is not a file."
            )
        elif exists(own) and not is_stub(own):
            raise RunExistsError(
                f"{str(own)!r} exists, and a run is never overwritten: continue it with --resume, "
                "name another file, or leave --to out and let the time name it."
            )
        return str(path)
    stem = re.sub(r"[^\w.+-]+", "-", title).strip("-.")[:_TITLE] or "run"
    folder = Path(working_folder(), "runs")
    if resume and (last := last_run(folder, stem, arguments)) is not None:
        check_resumable(rank_path(last, rank))
        return str(last)
    path = folder / f"{stem}-{_stamp(launched())}.db"
    chosen, count = path, 1
    while exists(rank_path(chosen, rank)):  # two runs in one second
        count += 1
        chosen = path.with_name(f"{path.stem}-{count}{path.suffix}")
    return str(chosen)


def working_folder() -> str:
    """The folder that the script starts in, as an absolute path where it has one."""
    try:
        return os.getcwd()  # noqa: PTH109 - before the script may change it
    except OSError:  # it was removed: the script may not care, and the run says so
        return os.curdir


def launched() -> float:
    """When this run was launched: of ranks that one launcher has started, when that was started."""
    several = _number("WORLD_SIZE") > 1 and "TORCHELASTIC_RUN_ID" in os.environ
    return parent_started() if several else time.time()


def _stamp(moment: float) -> str:
    return time.strftime(STAMP, time.localtime(moment))


def _number(variable: str) -> int:
    try:
        return int(os.environ.get(variable, "0"))
    except ValueError:
        return 0
