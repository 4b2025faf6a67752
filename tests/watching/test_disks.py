"""Disks that are full, fail or vanish: the same training to the bit, and one warning."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import nethook
from nethook.errors import RunFileError
from nethook.watching.watch import Watch
from tests.runs.disks import faulty_library, small_disk
from tests.watching.trained import STEPS, opened, weights_after


@pytest.fixture(scope="module")
def plain() -> torch.Tensor:
    return weights_after()[0]


@pytest.mark.parametrize("free", [0, 300, 550, 650])
def test_a_small_disk(tmp_path: Path, plain: torch.Tensor, free: int) -> None:
    """From one that takes nothing at all to one that is full in the middle."""
    with small_disk(tmp_path / "disk", "1200k") as disk:
        (disk / "ballast").write_bytes(bytes((1200 - free) * 1024 - 8192 * (free > 0)))
        path = disk / "runs" / "a.db"
        found, said = weights_after(path)
        assert torch.equal(found, plain)
        assert len(said) == 1, said
        assert "training is not affected; recording goes on when it can" in said[0]
        run = opened(path)
        assert run is None if free == 0 else run is not None or free < 600
        if run is None and path.parent.exists():
            assert not list(path.parent.iterdir())  # nothing blocks the path
        if run is not None:
            run.close()


def test_a_run_begins_when_a_full_disk_has_room(tmp_path: Path, plain: torch.Tensor) -> None:
    with small_disk(tmp_path / "disk", "8m") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes((8 << 20) - 4096))

        def make_room(step: int, watch: Watch) -> None:
            if step == 12:
                assert "full" in str(watch._session.journal.writer.problem)
                ballast.unlink()

        found, said = weights_after(disk / "a.db", make_room)
        assert torch.equal(found, plain)
        assert len(said) == 1
        run = opened(disk / "a.db")
        assert run is not None
        assert int(run.series("0").last_step[-1]) == STEPS - 1
        assert "recording-interrupted" in [event.kind for event in run.events]
        assert run.info["finished"]
        run.close()


def test_a_folder_that_is_removed(tmp_path: Path, plain: torch.Tensor) -> None:
    def remove(step: int, watch: Watch) -> None:
        if step == 12:
            watch._session.journal.writer.flush()
            shutil.rmtree(tmp_path / "runs")

    found, said = weights_after(tmp_path / "runs" / "a.db", remove)
    assert torch.equal(found, plain)
    assert len(said) == 1
    assert "was removed" in said[0]


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        ("-wal", "folder"),
        ("-wal", "pipe"),
        ("-wal", "link"),
        ("-shm", "nowhere"),
        ("-shm", "link"),
        ("-journal", "pipe"),
    ],
)
def test_something_else_lies_where_sqlite_writes(
    tmp_path: Path, plain: torch.Tensor, end: str, kind: str
) -> None:
    beside = tmp_path / f"a.db{end}"
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious" * 4096)
    if kind == "folder":
        (beside / "more").mkdir(parents=True)
    elif kind == "pipe":
        os.mkfifo(beside)
    else:
        beside.symlink_to(victim if kind == "link" else tmp_path / "nowhere")
    found, said = weights_after(tmp_path / "a.db")
    assert torch.equal(found, plain)
    assert len(said) <= 1
    assert victim.read_bytes() == b"precious" * 4096
    run = opened(tmp_path / "a.db")
    if run is not None:
        run.close()
    assert (run is None) == bool(said)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a\0b.db", "has a NUL character in it"),
        ("x" * 240 + ".db", "at most 234 bytes, for other files are named after it"),
        ("x" * 300, "at most 234 bytes"),
        ("ö" * 130 + ".db", "of 263 bytes"),
        ("/".join(["d" * 60] * 9) + "/a.db", "at most 504 bytes, which is all that SQLite opens"),
        ("~nobody-of-that-name/a.db", "cannot be made absolute"),
    ],
)
def test_a_path_that_can_never_be_written(name: str, words: str) -> None:
    with pytest.raises(RunFileError, match=r"`to` must be .*; got ") as caught:
        weights_after(name if name.startswith("~") else Path("/tmp", name))
    assert words in str(caught.value)
    assert "\0" not in str(caught.value)


@pytest.mark.parametrize("name", ["x" * 230 + ".db", "a\nb\x1b[31m.db", "ä\udcff.db", " .db"])
def test_a_strange_name_is_a_name(
    tmp_path: Path, plain: torch.Tensor, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, said = weights_after(tmp_path / name)
    assert torch.equal(found, plain)
    assert not said
    run = opened(tmp_path / name)
    assert run is not None
    assert int(run.series("0").last_step[-1]) == STEPS - 1
    run.close()
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert "\x1b" not in shown


def test_a_live_run_is_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "latest.db").symlink_to(tmp_path / "a.db")
    steps = []

    def look(step: int, watch: Watch) -> None:
        if step in (5, 20):
            watch._session.journal.writer.flush()
            with nethook.open_run(tmp_path / "latest.db") as run:
                steps.append(int(run.series("0").last_step[-1]))

    weights_after(tmp_path / "a.db", look)
    assert len(steps) == 2
    assert steps[0] < steps[1]


# Errors that only a system under pressure gives, made by a library in the place of the disk.

INJECTED = """
import ctypes, errno, json, sys
from pathlib import Path
import torch
from tests.watching.trained import opened, weights_after
faults = ctypes.CDLL(None)
faults.fail_with.argtypes = [ctypes.c_int, ctypes.c_long]
plain = weights_after()[0]
for name in ("ENOSPC", "EDQUOT", "EIO", "EROFS"):
    for after in (0, 30, -1):
        folder = Path(sys.argv[1], f"faulty-{name}-{after}")
        number = getattr(errno, name)
        def begin(step, watch):
            if after < 0 and step == 12:
                watch._session.journal.writer.flush()
                faults.fail_with(number, 0)
        if after >= 0:
            faults.fail_with(number, after)
        try:
            found, said = weights_after(folder / "a.db", begin)
        except Exception as error:
            found, said = None, [f"{type(error).__name__}: {error}"]
        same = found is not None and torch.equal(found, plain)
        faults.fail_with(0, 0)
        run = opened(folder / "a.db")
        read = None if run is None else len(run.catalogue)
        print(json.dumps([name, after, same, said, read]), flush=True)
"""


def test_writes_that_fail(tmp_path: Path) -> None:
    """A quota, a full disk, a broken one and one that has become read-only, at several moments."""
    done = subprocess.run(
        [sys.executable, "-c", INJECTED, str(tmp_path)],
        env={**os.environ, "LD_PRELOAD": str(faulty_library())},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == 12
    for name, after, same, said, read in results:
        case = (name, after, said)
        assert len(said) == 1, case
        if name == "EROFS" and not same:  # from the start, that is an error of the path
            assert after >= 0, case
            assert said[0].startswith("RunFileError: the run "), case
            assert read is None, case
            continue
        assert same, case
        assert "training is not affected" in said[0], case
        if after < 0:
            assert read, case
