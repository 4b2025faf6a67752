"""Runs in an object store: fetched into a cache, and published from a disk.

    nethook.open_run("s3://bucket/runs/mnist.db")

SQLite cannot read over a network, so a run is copied first, with the files of its other ranks. A
file whose version in the store is the one in the cache is not copied again. fsspec, which comes
with torch, knows the stores; each needs a library of its own, such as `s3fs` or `gcsfs`.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final

from nethook.errors import MissingLibraryError, NoSuchRunError, RunFileError
from nethook.files import exists, write_file
from nethook.runs.paths import rank_files

# A drive of Windows has one letter.
_URL: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]+://")
_MOST: Final = 5000  # runs of a folder that are fetched: as many as a page lists
_CACHE: Final = "NETHOOK_CACHE"
_VERSIONS: Final = ("ETag", "etag", "md5Hash", "version_id", "mtime", "LastModified", "created")


def is_url(path: str | Path) -> bool:
    """Whether a path names something in a store."""
    return isinstance(path, str) and _URL.match(path) is not None


def beside(run: Path, ending: str) -> Path:
    """`NAME` and this ending, beside a run; of a copy from a store, in the current folder."""
    copied = _root() in run.parents
    return Path(f"{run.stem}{ending}") if copied else run.with_name(f"{run.stem}{ending}")


def local(run: str | Path) -> Path:
    """The path of a run; of an address in a store, that of the copy, which is made now."""
    return fetched(run) if isinstance(run, str) and is_url(run) else Path(run)


def fetched(url: str) -> Path:
    """The local copy of a run, with the files of its other ranks beside it.

    Raises:
        NoSuchRunError: the store has no such file.
        RunFileError: it cannot be reached, or the copy cannot be written.
        MissingLibraryError: the library for this kind of store is not installed.
    """
    with _in_words(url):
        store, path = _store(url)
        name = PurePosixPath(path)
        if not store.exists(path):
            raise NoSuchRunError(f"there is no run {url!r}.")
        parent = str(name.parent)
        folder = _folder(url.removesuffix(name.name))
        folder.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"\.rank[1-9][0-9]{0,4}$", "", name.stem)
        pattern = re.compile(
            rf"{re.escape(stem)}(\.rank[1-9][0-9]{{0,4}})?{re.escape(name.suffix)}"
        )
        present = set()
        for entry in store.ls(parent, detail=True, refresh=True):
            file = PurePosixPath(entry["name"]).name
            if entry.get("type") == "file" and pattern.fullmatch(file):
                present.add(file)
                _bring(store, entry, folder / file)
        for old in rank_files(folder / name.name).values():
            if old.name not in present:
                old.unlink(missing_ok=True)  # of an earlier run with this name
    return folder / name.name


def fetched_runs(url: str) -> Path:
    """The local copy of a run, as `fetched` gives it, or of all runs in a folder of a store."""
    with _in_words(url):
        store, path = _store(url.rstrip("/"))
        if not store.isdir(path):
            return fetched(url)
        store.invalidate_cache(path)
        folder = _folder(f"{url.rstrip('/')}/")
        # No name leads out of the folder: a store takes any text as one.
        found = {
            target: entry
            for name, entry in store.find(path, detail=True).items()
            if (target := _inside(folder, name.removeprefix(path).strip("/"))).suffix == ".db"
        }
        if len(found) > _MOST:
            raise RunFileError(
                f"{url!r} has {len(found):,} run files, more than {_MOST:,}: name a folder in it."
            )
        folder.mkdir(parents=True, exist_ok=True)
        for target, entry in found.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            _bring(store, entry, target)
        for old in [path for path in folder.rglob("*.db") if path not in found]:
            old.unlink(missing_ok=True)
    return folder


def publish(path: str | Path, url: str) -> list[str]:
    """Copy a run and the files of its other ranks into a store; it may still be written to.

    Arguments:
        path: the run file.
        url: the folder in the store, or the whole name, which ends as the run file does.

    Returns:
        The names in the store.
    """
    source = Path(path).expanduser().absolute()
    files = rank_files(source)
    if not files:
        raise NoSuchRunError(f"there is no run {str(path)!r}.")
    stem = re.sub(r"\.rank[1-9][0-9]{0,4}$", "", source.stem)
    base, name = url.rstrip("/"), stem
    if PurePosixPath(base).suffix == source.suffix:
        base, _, last = base.rpartition("/")
        name = last.removesuffix(source.suffix)
    written = []
    with _in_words(url), tempfile.TemporaryDirectory(prefix="nethook-publish-") as scratch:
        store, folder = _store(base)
        for rank, file in files.items():
            copy = Path(scratch, file.name)
            _whole_copy(file, copy)
            end = f".rank{rank}{source.suffix}" if rank else source.suffix
            store.makedirs(folder, exist_ok=True)
            store.put_file(str(copy), f"{folder}/{name}{end}")
            written.append(f"{base}/{name}{end}")
            copy.unlink()
    return written


def _whole_copy(source: Path, target: Path) -> None:
    """A copy as it is at one moment, with what is still in the -wal file.

    Without such a file nobody writes, and SQLite is told so: it would leave one behind.
    """
    written = exists(Path(f"{source}-wal"))
    options = "mode=ro" if written else "mode=ro&immutable=1"
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?{options}", uri=True)) as reading,
        closing(sqlite3.connect(target)) as writing,
    ):
        reading.backup(writing)


def _bring(store: Any, entry: dict[str, Any], target: Path) -> None:
    """Copy a file, unless this version of it is there."""
    known = [str(entry[field]) for field in _VERSIONS if entry.get(field)]
    version = hashlib.sha256("|".join([*known, str(entry.get("size"))]).encode()).hexdigest()
    mark = target.with_name(f"{target.name}.version")
    if known and target.exists() and mark.exists() and mark.read_text() == version:
        return
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        store.get_file(entry["name"], str(part))
        mark.unlink(missing_ok=True)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    write_file(mark, version.encode())


def _inside(folder: Path, name: str) -> Path:
    """The place of a file of a store below a folder; the folder itself where there is none."""
    parts = PurePosixPath(name).parts
    return folder if ".." in parts or PurePosixPath(name).is_absolute() else folder.joinpath(*parts)


def _root() -> Path:
    """Where copies are kept: `NETHOOK_CACHE`, or the user's cache."""
    chosen = os.environ.get(_CACHE) or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "nethook"
    )
    return Path(chosen, "stores").absolute()


def _folder(url: str) -> Path:
    """Where copies of a folder of a store are kept. Its end is that of the address."""
    end = re.sub(r"[^\w.-]+", "-", url.partition("://")[2]).strip("-.")[-40:]
    return _root() / f"{hashlib.sha256(url.encode()).hexdigest()[:12]}-{end or 'runs'}"


def _store(url: str) -> tuple[Any, str]:
    import fsspec

    store, path = fsspec.core.url_to_fs(url)
    return store, str(path)


@contextmanager
def _in_words(url: str) -> Iterator[None]:
    """What a store's library raises, as an error of ours that names the address."""
    try:
        yield
    except (RunFileError, MissingLibraryError):
        raise
    except ImportError as error:
        raise MissingLibraryError(f"{url!r} needs a library that is missing: {error}") from None
    except Exception as error:  # every store raises errors of its own
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RunFileError(f"{url!r} cannot be reached: {said}") from None
