"""Names that stand for something else than a file: told from files, and never waited for."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from nethook.files import exists, is_file, is_full, not_a_file, read_file, replacing, whole_path


def test_what_a_name_stands_for(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"12345")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(plain)
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    found = {each.name: (is_file(each), is_file(each, links=False)) for each in tmp_path.iterdir()}
    assert found == {
        "plain": (True, True),
        "folder": (False, False),
        "pipe": (False, False),
        "link": (True, False),
        "lost": (False, False),
        "socket": (False, False),
    }
    kinds = {name: not_a_file(tmp_path / name) for name in ("plain", "folder", "pipe", "socket")}
    assert kinds == {"plain": "", "folder": "a folder", "pipe": "a pipe", "socket": "a socket"}
    assert not_a_file(tmp_path / "link", links=False) == "a link"
    assert all(exists(each) for each in tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "none", "x/" * 3000])
def test_no_name_raises(tmp_path: Path, name: str) -> None:
    assert not is_file(tmp_path / name)
    assert not exists(tmp_path / name)
    with pytest.raises(OSError, match=r"null|too long|No such"):
        read_file(tmp_path / name, most=10)


def test_a_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_file(tmp_path / "a", most=5) == b"12345"
    with pytest.raises(OSError, match="it is larger than 4 bytes"):
        read_file(tmp_path / "a", most=4)
    with (tmp_path / "holes").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(OSError, match="larger than 1,000 bytes"):
        read_file(tmp_path / "holes", most=1000)


def test_nothing_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe, where a file was expected"):
        read_file(tmp_path / "pipe", most=10)
    with pytest.raises(OSError, match="it is a device, where a file was expected"):
        read_file(Path("/dev/zero"), most=10)


def test_a_home_that_is_not_there(tmp_path: Path) -> None:
    assert whole_path("~/x") == Path.home() / "x"
    with pytest.raises(OSError, match="home directory"):
        whole_path("~nobody-of-that-name/x")


def test_which_errors_may_pass() -> None:
    errors = [OSError(errno.ENOSPC, ""), OSError(errno.EDQUOT, ""), OSError(errno.EACCES, "")]
    assert [is_full(each) for each in (*errors, ValueError())] == [True, True, False, False]


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / ("x" * 250)  # as long as names may be, nearly
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(path, durable=durable) as temporary:
        temporary.write_bytes(b"half")
        assert path.read_bytes() == b"old"
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    with replacing(path, durable=durable) as temporary:
        temporary.write_bytes(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    with pytest.raises(FileNotFoundError), replacing(path, durable=durable):
        pass  # nothing was written
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_published_was_on_the_disk_before(tmp_path: Path, monkeypatch) -> None:
    """First the file, then its name, then the folder that has the name."""
    done = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: (done.append("fsync"), fsync(number)))
    monkeypatch.setattr(
        Path, "replace", lambda self, to: (done.append("replace"), replace(self, to))[1]
    )
    with replacing(tmp_path / "a", durable=True) as temporary:
        temporary.write_bytes(b"1")
    assert done == ["fsync", "replace", "fsync"]
