"""What disks and processes do: a run survives it, and training never notices."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import nethook
from nethook.errors import RunFileError
from nethook.runs.writing import connection as run_connection
from nethook.runs.writing.writer import RunWriter
from tests.runs.disks import small_disk
from tests.runs.made import fold, write_run

ROOT = Path(__file__).parents[2]
SERIES = 20


def start(program: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    """Run a Python program that finds this folder's modules."""
    return subprocess.Popen(
        [
            sys.executable,
            "-u",
            "-W",
            "always",
            "-c",
            textwrap.dedent(program),
            *map(str, arguments),
        ],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def check_whole(path: Path) -> int:
    """A run is whole: windows without gaps, each with the numbers that belong to it. Its steps."""
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    series = nethook.open_run(path).series("layer0")
    if len(series) == 0:
        return 0
    assert series.first_step[0] == 0
    assert (series.first_step[1:] == series.last_step[:-1] + 1).all()
    assert (series["tensors"] == series.steps).all()
    assert (series.seen == series.steps).all()
    return int(series.last_step[-1]) + 1


# kill −9

TRAIN = """
    import sys
    from nethook.runs.writing.writer import RunWriter
    from tests.runs.made import fold
    writer = RunWriter(sys.argv[1], flush_every=0.02)
    for at in range(20):
        writer.add_series(f"layer{at}", "outputs", units=4)
    window = writer.window()
    for step in range(10**9):
        fold(window, step, range(20))
        window = writer.submit(window)
        if step % 5 == 4 and writer.flush() and writer.waiting == 0 and window.steps == 0:
            print(step + 1)
"""


def test_kill_9_at_20_random_moments(tmp_path: Path) -> None:
    """Each time the file opens, is whole, and has everything up to the last flush."""
    chance = random.Random(5)
    for group in range(5):  # four at a time
        running = []
        for at in range(4):
            path = tmp_path / f"{group}-{at}.db"
            running.append((path, start(TRAIN, path)))
        for path, process in running:
            assert process.stdout is not None
            first = process.stdout.readline()  # it is at work
            time.sleep(chance.random() * 0.25)
            process.send_signal(signal.SIGKILL)
            rest, said = process.communicate()
            assert process.returncode == -signal.SIGKILL, said
            flushed = int((first + rest).split()[-1])
            assert check_whole(path) >= flushed
            assert nethook.open_run(path).ranks[0].state == "died"
    # What was killed can be continued.
    writer = RunWriter(path, resume=True)
    assert writer.next_step >= flushed
    writer.close()


def test_kill_9_while_it_is_being_made(tmp_path: Path) -> None:
    """A file that was cut off before its first transaction is refused, not read as something."""
    for at in range(4):
        path = tmp_path / f"{at}.db"
        process = start(
            "import sys; from nethook.runs.writing.writer import RunWriter; RunWriter(sys.argv[1])",
            path,
        )
        deadline = time.monotonic() + 20
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(0.001 * at)
        process.kill()
        process.communicate()
        with contextlib.suppress(RunFileError):
            nethook.open_run(path)


# A full disk


def test_a_full_disk_is_said_once_and_recording_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(1_500_000))
        writer = RunWriter(disk / "a.db", flush_every=0.01)
        for at in range(SERIES):
            writer.add_series(f"layer{at}", "outputs", units=4)
        window = writer.window()
        with pytest.warns(RuntimeWarning) as caught:
            window = train_until(writer, window, lambda: writer.problem is not None)
        assert "full" in str(writer.problem)
        assert "training is not affected; recording goes on when it can" in str(caught[0].message)
        for step in range(window.last_step + 1, window.last_step + 200):  # still nothing raises
            fold(window, step, range(SERIES))
            window = writer.submit(window)
        ballast.unlink()
        window = train_until(writer, window, lambda: writer.problem is None, flush=True)
        last = window.last_step
        writer.close(window)
        assert len(caught) == 1
        run = nethook.open_run(disk / "a.db")
        assert int(run.series("layer0").last_step[-1]) >= last
        assert "recording-interrupted" in [event.kind for event in run.events]
        connection = sqlite3.connect(disk / "a.db")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


def train_until(writer, window, done, *, flush: bool = False, seconds: float = 30.0):
    """Fold steps until something is so."""
    deadline = time.monotonic() + seconds
    step = window.last_step
    while not done():
        assert time.monotonic() < deadline
        step += 1
        fold(window, step, range(SERIES))
        window = writer.submit(window)
        if window.steps == 0:
            window.last_step = step
        if flush:
            writer.flush(2)
        time.sleep(0.001)
    return window


FULL = """
    import resource, sys
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
    from nethook.runs.writing.writer import RunWriter
    from tests.runs.made import fold
    writer = RunWriter(sys.argv[1], flush_every=0.01)
    for at in range(20):
        writer.add_series(f"layer{at}", "outputs", units=4)
    window = writer.window()
    for step in range(400):
        fold(window, step, range(20))
        window = writer.submit(window)
        writer.log("loss", 1.0, step)
    writer.flush(5)
    print("problem:", writer.problem)
    writer.close(window, timeout=10)
    print("trained to the end")
"""


def test_a_file_that_may_not_grow_any_more(tmp_path: Path) -> None:
    """The same without root: the system refuses to make the file longer."""
    process = start(FULL, tmp_path / "a.db")
    out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "trained to the end" in out
    assert "problem: None" not in out
    assert said.count("RuntimeWarning") == 1
    nethook.open_run(tmp_path / "a.db").series("layer0")


# The file goes away


@pytest.mark.parametrize("lose", ["folder", "file", "replaced"])
def test_a_lost_file_is_said_once_and_training_goes_on(tmp_path: Path, lose: str) -> None:
    path = tmp_path / "runs" / "a.db"
    writer = RunWriter(path, flush_every=0.01)
    for at in range(SERIES):
        writer.add_series(f"layer{at}", "outputs")
    writer.flush()
    if lose == "folder":
        shutil.rmtree(path.parent)
    else:
        path.unlink()
        if lose == "replaced":
            path.write_text("something else")
    window = writer.window()
    with pytest.warns(RuntimeWarning, match=r"removed|replaced") as caught:
        window = train_until(writer, window, lambda: writer.problem is not None)
    for step in range(500, 700):  # any other warning would be an error
        fold(window, step, range(SERIES))
        window = writer.submit(window)
    writer.close(window)
    assert len(caught) == 1
    assert "nothing more is recorded" in str(caught[0].message)
    if lose == "replaced":
        assert path.read_text() == "something else"


AS_NOBODY = """
import importlib.metadata, os, platform, sys, tempfile
from pathlib import Path
import nethook
from nethook.errors import RunFileError
from nethook.runs.reading.run import open_run
from nethook.runs.writing.writer import RunWriter
from tests.runs.disks import small_disk
from tests.runs.made import fold, write_run
importlib.metadata.version("nethook")
# What is imported late is imported now: the folder of the packages may be closed to others.
with tempfile.TemporaryDirectory() as folder:
    write_run(Path(folder) / "a.db", 3)
    open_run(Path(folder) / "a.db").series("layer0")
if os.geteuid() == 0:  # permissions do not bind root
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


def as_nobody(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a program as a user whom permissions bind."""
    return start(AS_NOBODY + textwrap.dedent(program), *arguments)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="nethook-test-"))
    folder.chmod(0o777)
    yield folder
    for each in (folder, *folder.iterdir()):
        each.chmod(0o777)
    shutil.rmtree(folder)


READ_ONLY = """
    from pathlib import Path
    path = Path(sys.argv[1])
    writer = RunWriter(path, flush_every=0.01)
    writer.add_series("layer0", "outputs")
    window = writer.window()
    for step in range(100):
        fold(window, step, [0])
        window = writer.submit(window)
        if step == 50:
            writer.flush()
            path.chmod(0o444)
            path.parent.chmod(0o555)
    writer.close(window)
    print("trained to the end", writer.problem)
    try:
        RunWriter(path, resume=True)
    except OSError as error:
        print("refused:", error)
    try:
        RunWriter(path.with_name("b.db"))
    except OSError as error:
        print("refused:", error)
    print(len(open_run(path).series("layer0")) > 0)
"""


def test_a_file_that_is_made_read_only(open_folder: Path) -> None:
    process = as_nobody(READ_ONLY, open_folder / "mine" / "a.db")
    out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    lines = out.splitlines()
    assert lines[0].startswith("trained to the end")
    assert "a.db' cannot be written: [Errno 13] the file is read-only" in lines[1]
    assert "b.db' cannot be written: [Errno 13] Permission denied" in lines[2]
    assert lines[3] == "True"
    assert said.count("RuntimeWarning") <= 1


# Other processes


def test_only_one_of_many_processes_makes_a_run(tmp_path: Path) -> None:
    program = """
        import sys, time
        from nethook.errors import RunFileError
        from nethook.runs.writing.writer import RunWriter
        try:
            writer = RunWriter(sys.argv[1])
        except RunFileError as error:
            print("refused", type(error).__name__)
        else:
            writer.event("mine", 0)
            time.sleep(0.5)
            writer.close()
            print("made")
    """
    processes = [start(program, tmp_path / "a.db") for _ in range(4)]
    said = sorted(process.communicate(timeout=60)[0].split()[0] for process in processes)
    assert said == ["made", "refused", "refused", "refused"]
    assert len(nethook.open_run(tmp_path / "a.db").events) == 1


FORK = """
    import os, sys
    from nethook.runs.writing.writer import RunWriter
    from tests.runs.made import fold
    writer = RunWriter(sys.argv[1], flush_every=0.01)
    writer.add_series("layer0", "outputs")
    window = writer.window()
    for step in range(200):
        fold(window, step, [0])
        window = writer.submit(window)
        if step % 40 == 20:
            child = os.fork()
            if child == 0:
                for more in range(5):  # a worker that knows nothing of the run
                    fold(window, 1000 + more, [0])
                    window = writer.submit(window)
                writer.event("child", 1)
                writer.log("child", 1.0, 1)
                assert writer.flush() is False
                if step < 100:
                    writer.close()
                    del writer
                    sys.exit(0)
                os._exit(0) if step < 150 else os.execv("/bin/true", ["true"])
            assert os.waitpid(child, 0)[1] == 0
    writer.close(window)
    print("problem:", writer.problem)
"""


def test_a_fork_in_the_middle(tmp_path: Path) -> None:
    process = start(FORK, tmp_path / "a.db")
    out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert out == "problem: None\n"
    assert check_whole(tmp_path / "a.db") == 200
    run = nethook.open_run(tmp_path / "a.db")
    assert run.events == ()
    assert not run.scalars
    assert list(tmp_path.iterdir()) == [tmp_path / "a.db"]


def wal_size(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return Path(f"{path}-wal").stat().st_size
    return 0


def test_a_reader_that_stays_open_does_not_hold_the_wal(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    writer = RunWriter(path, flush_every=0.005, wal_limit=1 << 20)
    for at in range(200):
        writer.add_series(f"layer{at}", "outputs")
    writer.flush()
    run = nethook.open_run(path)
    window, most, step = writer.window(), 0, -1
    written = 0
    while written < 40 << 20:  # forty times what may be in the -wal file
        step += 1
        fold(window, step, [step % 200])
        window.histograms[...] += random.Random(step).randrange(1 << 20)
        window = writer.submit(window)
        writer.flush()
        written += 200 * 1000
        if step % 5 == 0:
            assert len(run.series("layer0")) > 0  # reads, and stays open
        most = max(most, wal_size(path))
    writer.close(window)
    assert writer.problem is None
    assert most < 24 << 20


def test_a_program_that_never_ends_its_query_cannot_make_the_wal_grow(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    limit = 1 << 20
    writer = RunWriter(path, flush_every=0.005, wal_limit=limit)
    for at in range(SERIES):
        writer.add_series(f"layer{at}", "outputs")
    writer.flush()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN")
    holder.execute("SELECT * FROM info").fetchone()  # a snapshot that is held
    window = writer.window()
    with pytest.warns(RuntimeWarning, match="a program that reads it keeps its -wal file"):
        window = train_until(writer, window, lambda: writer.problem is not None, flush=True)
    for step in range(window.last_step + 1, window.last_step + 100):
        fold(window, step, range(SERIES))
        window = writer.submit(window)
    assert wal_size(path) < 3 * limit
    holder.execute("COMMIT")
    holder.close()
    window = train_until(writer, window, lambda: writer.problem is None, flush=True)
    writer.close(window)
    check_whole(path)  # merged, and without a gap


def test_closing_does_not_wait_for_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    writer = write_run(path, 10, close=False, wal_limit=1)
    writer.flush()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN")
    holder.execute("SELECT * FROM info").fetchone()
    window = writer.window()
    fold(window, 10, range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it was said before depends on the moment
        writer.close(window)
    holder.close()
    assert check_whole(path) == 11


# Disks without WAL


@pytest.mark.parametrize("reason", ["refused", "network"])
def test_without_wal_a_run_is_written_in_scratch_and_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(run_connection, "PUBLISH", 0.01)
    options: dict[str, object] = {}
    if reason == "network":
        monkeypatch.setattr(run_connection, "on_network", lambda folder: True)
    else:
        options["vfs"] = "unix-dotfile"  # one of SQLite's own that has no shared memory
    target = tmp_path / "runs" / "a.db"
    writer = write_run(target, 30, close=False, **options)
    assert list((tmp_path / "scratch").iterdir())
    assert writer.flush()
    run = nethook.open_run(target)
    assert len(run.series("layer0")) == 30  # while it is being written
    first = target.stat().st_ino
    writer.event("later", 5)
    assert writer.flush()
    assert target.stat().st_ino != first  # replaced in one step, never half written
    assert [event.kind for event in run.events] == ["later"]
    assert [path.name for path in target.parent.iterdir()] == ["a.db"]
    writer.close()
    assert not list((tmp_path / "scratch").iterdir())
    connection = sqlite3.connect(target)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()
    assert check_whole(target) == 30
    write_run(target, 10, resume=True, **options)
    assert check_whole(target) == 40


def test_a_run_that_cannot_be_published_stays_in_scratch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(run_connection, "on_network", lambda folder: True)
    target = tmp_path / "runs" / "a.db"
    writer = write_run(target, 30, close=False)
    with pytest.warns(RuntimeWarning, match="the folder .* was removed"):  # noqa: PT031
        shutil.rmtree(target.parent)  # its thread may warn before it is closed
        writer.close()
    (kept,) = (tmp_path / "scratch").glob("*/a.db")
    assert str(kept) in str(writer.problem)
    assert len(nethook.open_run(kept).series("layer0")) > 0


# Read-only media


@pytest.mark.parametrize("cut_off", [False, True])
def test_read_only_media(tmp_path: Path, cut_off: bool) -> None:
    with small_disk(tmp_path / "disk", "20m") as disk:
        if cut_off:  # with the -wal file of a run that was killed
            process = start(TRAIN, disk / "a.db")
            assert process.stdout is not None
            process.stdout.readline()
            process.kill()
            process.communicate()
            (disk / "a.db-shm").unlink()
            assert wal_size(disk / "a.db") > 0
        else:
            write_run(disk / "a.db", 30)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        run = nethook.open_run(disk / "a.db")
        assert run.series("layer0").steps.sum() >= 5  # windows may have merged
        assert run.histograms("layer0").counts.sum() > 0
        run.close()
        with pytest.raises(RunFileError, match="Read-only file system"):
            RunWriter(disk / "b.db")


READ = """
    print(len(open_run(sys.argv[1]).series("layer0")))
"""


def test_a_folder_that_may_only_be_read(open_folder: Path) -> None:
    """The same without root."""
    write_run(open_folder / "a.db", 30)
    (open_folder / "a.db").chmod(0o444)
    open_folder.chmod(0o555)
    out, said = as_nobody(READ, open_folder / "a.db").communicate(timeout=60)
    assert out == "30\n", said


# A slow disk

SLOW = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
#include <stdio.h>
/* Each write to a run's file takes 30 ms. */
static int slow(int fd) {
  char link[64], path[512];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return strstr(path, "slow.db") != 0;
}
#define WRAP(name, offset) \
  ssize_t name(int fd, const void *data, size_t size, offset at) { \
    static ssize_t (*real)(int, const void *, size_t, offset); \
    if (!real) real = dlsym(RTLD_NEXT, #name); \
    if (slow(fd)) usleep(30000); \
    return real(fd, data, size, at); \
  }
WRAP(pwrite64, off64_t)
WRAP(pwrite, off_t)
"""

TIMED = """
    import resource, sys, time
    from nethook.runs.writing.writer import RunWriter
    from tests.runs.made import fold
    writer = RunWriter(sys.argv[1], flush_every=0.01)
    for at in range(300):
        writer.add_series(f"layer{at}", "outputs")
    window = writer.window()
    for step in range(300):
        fold(window, step, [0])
        window.histograms += step
        if step == 50:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        window = writer.submit(window)
        time.sleep(0.005)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    writer.close(window, timeout=60)
    print(grown, writer.problem)
"""


def test_a_slow_disk_slows_nobody(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("a slow disk is made with a C compiler, on Linux")
    (tmp_path / "slow.c").write_text(SLOW)
    library = tmp_path / "slow.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", library, tmp_path / "slow.c", "-ldl"], check=True
    )
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    process = start(TIMED, tmp_path / "slow.db", env=environment)
    out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    grown, problem = out.split()
    assert problem == "None"
    assert int(grown) < 20_000  # KB: nothing piles up
    series = nethook.open_run(tmp_path / "slow.db").series("layer0")
    assert len(series) < 250  # windows merged, so nobody waited for the disk ...
    assert series.steps.sum() == 300  # ... and no step is missing
