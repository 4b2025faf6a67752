"""Where a run goes: names with the time in them, ranks, and paths that are taken."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from nethook.errors import RunExistsError, RunFileError
from nethook.files import exists, is_full, whole_path
from nethook.runs.launch import launch
from nethook.runs.stubs import is_stub

STAMP = "%Y-%m-%dT%H-%M-%S"
"""How a time is spelt in a name."""

LONGEST_PATH: Final = 504
"""Bytes of a path that SQLite opens."""

# Bytes that a file system takes for one name, and what must stay free behind that of a run: its
# flight recorder's file, while that is written, has the longest.
_LONGEST_NAME: Final = 255
_BEHIND: Final = len(".flight.safetensors.part") - len(".db")

# As `rank_path` spells it, and no higher than any run has ranks: names come from strangers, too.
_RANK = re.compile(r"\.rank([1-9][0-9]{0,4})$")


def rank_path(path: Path, rank: int) -> Path:
    """The file of one rank: `NAME.db` for rank 0, `NAME.rank{r}.db` beside it for the others."""
    return path if rank == 0 else path.with_name(f"{path.stem}.rank{rank}{path.suffix}")


def is_rank_file(path: Path) -> bool:
    """Whether a path names the file of a rank other than 0."""
    return bool(_RANK.search(path.stem))


def split_rank(path: Path) -> tuple[str, str]:
    """What a path has before and after the number of its rank: `runs/NAME` and `.db`."""
    return _RANK.sub("", str(path.with_suffix(""))), path.suffix


def rank_files(path: Path, beside: Iterable[str] | None = None) -> dict[int, Path]:
    """The files of all ranks that lie beside `path`, which may itself be that of any rank.

    `beside` are the names of what lies in its folder, where they were listed already.
    """
    stem = _RANK.sub("", path.stem)
    main = path.with_name(f"{stem}{path.suffix}")
    files = {0: main} if exists(main) else {}
    # The name may hold what a glob would read as a pattern, so it is compared instead.
    begin = f"{stem}.rank"
    for name in _beside(path) if beside is None else beside:
        if not name.startswith(begin):
            continue
        other = path.with_name(name)
        rank = _RANK.search(other.stem)
        if rank and other.suffix == path.suffix and other.stem[: rank.start()] == stem:
            files[int(rank[1])] = other
    return dict(sorted(files.items()))


def _beside(path: Path) -> list[str]:
    """The names in the same folder; nothing where that cannot be read."""
    try:
        return os.listdir(path.parent)  # noqa: PTH208 - thousands of paths take long
    except (OSError, ValueError):
        return []


def parent_started() -> float:
    """When the process that started this one was started; now, where that cannot be known.

    Ranks have one launcher. So all of them choose the same name, and their files are found
    together, although nothing is exchanged.
    """
    try:
        fields = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        booted = re.search(r"^btime (\d+)$", Path("/proc/stat").read_text(), re.MULTILINE)
        if booted is not None:
            return int(booted[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        pass  # no such files: the time now, which is mostly within the same second
    return time.time()


def run_label(*, several: bool) -> str:
    """What a new run is called: the identity of its launch or, without one, a time.

    `several` ranks of one launcher take the time at which that was started.
    """
    if identity := launch().identity:
        return identity
    return time.strftime(STAMP, time.localtime(parent_started() if several else time.time()))


def is_there(path: Path, rank: int) -> bool:
    """Whether a rank has a file of this name already."""
    return exists(rank_path(path, rank))


def new_run_path(
    path: str | Path,
    *,
    rank: int = 0,
    world_size: int = 1,
    resume: bool = False,
    is_taken: Callable[[Path, int], bool] = is_there,
) -> Path:
    """The path that a new run is written to; its folder is made.

    A file in which a kill has left nothing does not block its path, unless the time named it: two
    runs may begin in one second, and one of them is about to write there.

    Arguments:
        path: where to; `{time}` in it becomes the time now, as in `runs/2026-01-31T12-00-00.db`, or
            the identity of a launch on several machines (launch.py).
        rank: the rank of this process.
        world_size: how many there are; of several, the time is that of their launcher.
        resume: whether a run that is there already is continued.
        is_taken: whether a name that the time has made is used already.

    Raises:
        RunFileError: a path that can never be written. A disk that is full is none: see `Storage`.
    """
    if not str(path).strip():
        raise RunFileError(
            f"`to` must be the path of a file; got {_shown(path)}, which is empty. Name one, "
            "such as 'runs/mnist.db'."
        )
    timed = "{time}" in str(path)
    label = run_label(several=world_size > 1)
    checked = check_path(Path(str(path).replace("{time}", label)), rank)
    chosen = rank_path(checked, rank)
    folder = False
    try:
        chosen.parent.mkdir(parents=True, exist_ok=True)
        folder = chosen.is_dir()
    except OSError as error:
        if not is_full(error):
            raise RunFileError(f"the folder of {str(path)!r} cannot be made: {error}") from error
    if folder:
        raise RunFileError(
            f"`to` must be the path of a file; got {_shown(chosen)}, which is a folder. Name a "
            "file, such as 'runs/mnist.db'."
        )
    if resume:
        return chosen
    if not timed:
        if exists(chosen) and not is_stub(chosen):
            raise RunExistsError(
                f"{str(chosen)!r} exists, and a run is never overwritten. Continue it with "
                "resume=True, name another file, or let the time name it: "
                f"{str(Path(path).with_name('{time}.db'))!r}."
            )
        return chosen
    return rank_path(first_free(checked, rank, is_taken), rank)


def first_free(path: Path, rank: int, is_taken: Callable[[Path, int], bool]) -> Path:
    """The path, or the first of `NAME-2`, `NAME-3` … that no earlier run has taken."""
    chosen, count = path, 1
    while is_taken(chosen, rank):
        count += 1
        chosen = path.with_name(f"{path.stem}-{count}{path.suffix}")
    return chosen


def check_path(path: Path, rank: int = 0) -> Path:
    """The absolute path, if a run can be written to it at all, on any disk.

    Raises:
        RunFileError: the name has a NUL, or is too long for a file system or for SQLite.
    """
    if "\0" in str(path):
        raise RunFileError(
            f"`to` must be the path of a file; got {_shown(path)}, which has a NUL character in "
            "it. Leave that out."
        )
    try:
        whole = whole_path(path)
    except OSError as error:
        raise RunFileError(
            f"`to` must be the path of a file; got {_shown(path)}, which cannot be made absolute "
            f"({error}). Name the whole path."
        ) from None
    name = len(os.fsencode(rank_path(whole, rank).name))
    most = _LONGEST_NAME - _BEHIND
    if name > most:
        raise RunFileError(
            f"`to` must be a file whose name has at most {most} bytes, for other files are named "
            f"after it; got {_shown(path)}, of {name} bytes. Choose a shorter one."
        )
    length = len(os.fsencode(rank_path(whole, rank)))
    if length > LONGEST_PATH:
        raise RunFileError(
            f"`to` must be a path of at most {LONGEST_PATH} bytes, which is all that SQLite opens; "
            f"got {_shown(path)}, of {length} bytes. Choose a folder that is less deep."
        )
    return whole


def _shown(path: str | Path) -> str:
    text = repr(str(path))
    return text if len(text) <= 100 else f"{text[:60]}…{text[-30:]}"
