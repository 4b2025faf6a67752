"""Opening and writing files by name, whatever the name stands for.

What it stands for is looked at before it is opened: opening a pipe waits for a writer, opening a
device may do anything, and a file of a terabyte does not fit into memory.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_KINDS: Final = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

_FULL: Final = frozenset(
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EIO", "ESTALE") if hasattr(errno, name)
)


def whole_path(path: str | Path) -> Path:
    """The absolute path, with `~` filled in.

    Raises:
        OSError: there is no such home, or the folder that one is in is gone.
    """
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise OSError(errno.ENOENT, str(error)) from None


def not_a_file(path: Path, *, links: bool = True) -> str:
    """What a name stands for where it is not a regular file: "a pipe"; "" where it is one.

    Arguments:
        path: the name.
        links: whether a link to a regular file will do.

    Raises:
        OSError: there is nothing by that name, or it cannot be looked at.
    """
    try:
        mode = (path.stat() if links else path.lstat()).st_mode
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, str(error)) from None
    if stat.S_ISREG(mode):
        return ""
    return next((words for is_kind, words in _KINDS if is_kind(mode)), "something else")


def is_file(path: Path, *, links: bool = True) -> bool:
    """Whether there is a regular file by that name. Never raises, whatever the name is."""
    try:
        return not not_a_file(path, links=links)
    except OSError:
        return False


def exists(path: Path) -> bool:
    """Whether the name is taken, if only by a link that leads nowhere. Never raises."""
    return os.path.lexists(path) if "\0" not in str(path) else False


def read_file(path: Path, *, most: int, links: bool = True) -> bytes:
    """The contents of a regular file of at most `most` bytes.

    Raises:
        OSError: it is something else, larger than that, or cannot be read.
    """
    if kind := not_a_file(path, links=links):
        raise OSError(f"it is {kind}, where a file was expected")
    # It may have been replaced since: without waiting, and looked at again.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no longer a file")
        if status.st_size > most:
            raise OSError(f"it is larger than {most:,} bytes")
        return stream.read(most + 1)[:most]


def write_file(path: Path, data: bytes) -> None:
    """Writes a file that is there as a whole, old or new, whoever opens it meanwhile.

    Raises:
        OSError: it cannot be written; then nothing of it is left.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "embedded null byte")
    if exists(path) and (kind := not_a_file(path)):  # a pipe would be replaced by a file
        raise OSError(f"it is {kind}, where a file was expected")
    with replacing(path) as temporary, temporary.open("xb") as stream:
        stream.write(data)


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Gives a name beside `path`; the file of that name takes the place of `path` at the end.

    After an error nothing of it is left. With `durable` it is on the disk by then: see `publish`.
    """
    # A name of its own: that of the file may be as long as names can be.
    temporary = path.with_name(f".nethook-{secrets.token_hex(8)}.part")
    try:
        yield temporary
        if durable:
            publish(temporary, path)
        else:
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def publish(temporary: Path, path: Path) -> None:
    """Gives a file its name once it is on the disk: a power cut leaves all of it, or nothing."""
    with temporary.open("r+b") as stream:
        os.fsync(stream.fileno())
    temporary.replace(path)
    if hasattr(os, "O_DIRECTORY"):  # the name, too, must be on the disk
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def is_full(error: BaseException) -> bool:
    """Whether an error is that of a disk that is full or fails, and not that of a path."""
    return isinstance(error, OSError) and error.errno in _FULL
