"""Where a run goes: decided before the script can change the folder it works in."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from nethook.errors import RunExistsError
from nethook.runs.paths import rank_path


def run_file(to: str | None, title: str) -> str:
    """The absolute path of the run file of this process's run.

    Arguments:
        to: what was asked for; None for `runs/TITLE-TIME.db`.
        title: the name of the run.

    Raises:
        RunExistsError: the file that was asked for is there already.
    """
    rank = _number("RANK")
    if to is not None:
        path = Path(to.replace("{time}", _stamp(launched()))).expanduser().absolute()
        if rank_path(path, rank).exists():
            raise RunExistsError(
                f"{str(rank_path(path, rank))!r} exists, and a run is never overwritten: name "
                "another file, or leave --to out and let the time name it."
            )
        return str(path)
    plain = re.sub(r"[^\w.+-]+", "-", title).strip("-.") or "run"
    path = Path("runs", f"{plain}-{_stamp(launched())}.db").absolute()
    chosen, count = path, 1
    while rank_path(chosen, rank).exists():  # two runs in one second
        count += 1
        chosen = path.with_name(f"{path.stem}-{count}{path.suffix}")
    return str(chosen)


def launched() -> float:
    """When this run was launched: of ranks that one launcher has started, when that was started.

    So all of them choose the same name, and their files are found together.
    """
    if _number("WORLD_SIZE") > 1 and "TORCHELASTIC_RUN_ID" in os.environ:
        try:
            fields = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
            booted = re.search(r"^btime (\d+)$", Path("/proc/stat").read_text(), re.MULTILINE)
            if booted is not None:
                return int(booted[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            pass  # no such files: the time now, which is mostly within the same second
    return time.time()


def _stamp(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H-%M-%S", time.localtime(moment))


def _number(variable: str) -> int:
    try:
        return int(os.environ.get(variable, "0"))
    except ValueError:
        return 0
