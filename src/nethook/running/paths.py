"""Where a run goes: decided before the script can change the folder it works in."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nethook.errors import RunExistsError, RunFileError
from nethook.files import exists
from nethook.running.resumable import check_resumable, last_run
from nethook.runs.launch import launch
from nethook.runs.paths import check_path, first_free, rank_path, run_label
from nethook.runs.reading.taken import is_taken
from nethook.runs.stubs import is_stub

_TITLE: Final = 50  # characters of a script's name in that of its run, each of up to 4 bytes


def run_file(
    to: str | None, title: str, *, resume: bool = False, arguments: Sequence[str] = ()
) -> str:
    """The absolute path of the run file of this process's run.

    Arguments:
        to: what was asked for; None for `runs/TITLE-TIME.db` (a launch on several machines has an
            identity in place of the time), or with `resume` the last of these.
        title: the name of the run.
        resume: whether it goes on in a run that is there.
        arguments: of the script.

    Raises:
        RunExistsError: the file that was asked for is there already.
        RunFileError: it can never be written, it cannot be gone on with, or it is not clear which
            run is meant.
    """
    here = launch()
    rank = here.rank
    label = run_label(several=here.world_size > 1 and "TORCHELASTIC_RUN_ID" in os.environ)
    if to is not None:
        if resume and "{time}" in to:
            raise RunFileError(
                f"`to` must name one file with --resume; got {to!r}, which names a new file each "
                "time. Leave {time} out."
            )
        path = check_path(Path(to.replace("{time}", label)), rank)
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
    named = folder / f"{stem}-{label}.db"
    if resume and here.identity and exists(named):  # a job that was put back into the queue
        check_resumable(rank_path(named, rank))
        return str(named)
    if resume and (last := last_run(folder, stem, arguments)) is not None:
        check_resumable(rank_path(last, rank))
        return str(last)
    return str(first_free(named, rank, is_taken))


def working_folder() -> str:
    """The folder that the script starts in, as an absolute path where it has one."""
    try:
        return os.getcwd()  # noqa: PTH109 - before the script may change it
    except OSError:  # it was removed: the script may not care, and the run says so
        return os.curdir
