"""Scripts that would change the world, and what a trial makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running.trying.trials import everything, trial

# In each, `OUT` is a folder outside, with a file `kept` in it. They catch what they can.
HEAD = """
import os, pathlib, shutil, socket, sqlite3, subprocess, sys
OUT = sys.argv[1]
KEPT = os.path.join(OUT, "kept")
"""
# What a script does, and what is said of it.
HOSTILE = {
    "open to write": ("open(KEPT, 'w').write('x')", "writes {out}/kept"),
    "open to append": ("open(KEPT, 'a').write('x')", "writes {out}/kept"),
    "open to update": ("open(KEPT, 'r+b').write(b'x')", "writes {out}/kept"),
    "open a new file": ("open(OUT + '/new', 'x')", "writes {out}/new"),
    "os.open": ("os.open(OUT + '/new', os.O_CREAT | os.O_WRONLY)", "writes {out}/new"),
    "open a folder": ("os.open(OUT, os.O_RDONLY)", "opens the folder {out}"),
    "pathlib": ("pathlib.Path(KEPT).write_text('x')", "writes {out}/kept"),
    "os.remove": ("os.remove(KEPT)", "deletes {out}/kept"),
    "shutil.rmtree": ("shutil.rmtree(OUT)", "deletes {out}"),
    "os.rename": ("os.rename(KEPT, OUT + '/new')", "renames {out}/kept"),
    "rename into the scratch folder": ("os.replace(KEPT, 'new')", "renames {out}/kept"),
    "os.mkdir": ("os.mkdir(OUT + '/new')", "makes {out}/new"),
    "os.truncate": ("os.truncate(KEPT, 0)", "changes {out}/kept"),
    "os.chmod": ("os.chmod(KEPT, 0)", "changes {out}/kept"),
    "os.utime": ("os.utime(KEPT)", "changes {out}/kept"),
    "shutil.copy": ("shutil.copy(sys.argv[0], OUT)", "writes {out}/script.py"),
    "a hard link": ("os.link(KEPT, 'mine')", "makes a hard link to {out}/kept"),
    "a link outside": ("os.symlink('x', OUT + '/new')", "makes the link {out}/new"),
    "chdir, and a relative path": ("os.chdir(OUT); open('new', 'w')", "writes new"),
    "sqlite3": ("sqlite3.connect(OUT + '/new.db')", "opens the database {out}/new.db"),
    "ATTACH": (
        "sqlite3.connect(':memory:').execute(f\"ATTACH '{OUT}/new.db' AS x\")",
        "opens the database {out}/new.db",
    ),
    "numpy.save": ("import numpy; numpy.save(OUT + '/new', [1])", "writes {out}/new.npy"),
    "numpy.tofile": (
        "import numpy; numpy.zeros(3).tofile(OUT + '/new')",
        "writes {out}/new",
    ),
    "connect": ("socket.create_connection(('127.0.0.1', 9))", "looks up the address of 127.0"),
    "connect to an address": ("socket.socket().connect(('127.0.0.1', 9))", "connects to 127"),
    "send a datagram": (
        "socket.socket(type=socket.SOCK_DGRAM).sendto(b'', ('127.0.0.1', 9))",
        "sends to 127",
    ),
    "a url": (
        "import urllib.request as r; r.urlopen('http://127.0.0.1:9')",
        "requests http://127.0.0.1:9",
    ),
    "listen": ("socket.socket().bind(('127.0.0.1', 0))", "opens a port at 127"),
    "subprocess": ("subprocess.run(['touch', KEPT])", "starts the process touch {out}/kept"),
    "ldconfig": ("subprocess.run(['/sbin/ldconfig'])", "starts the process /sbin/ldconfig"),
    "another ldconfig": (
        "subprocess.run(['/sbin/ldconfig', '-p'], executable='/bin/touch')",
        "starts the process /sbin/ldconfig -p",
    ),
    "os.system": ("os.system('touch ' + KEPT)", "runs the command touch {out}/kept"),
    "os.execv": ("os.execv('/bin/touch', ['touch', KEPT])", "becomes the program /bin/touch"),
    "os.posix_spawn": (
        "os.posix_spawn('/bin/touch', ['touch', KEPT], {})",
        "starts the process /bin/touch",
    ),
    "os.fork": ("os.fork()", "forks"),
    "os.kill": ("os.kill(os.getppid(), 15)", "sends a signal to process"),
    "multiprocessing, spawned": (
        "import multiprocessing as m; m.get_context('spawn').Process(target=print).start()",
        "starts a process",
    ),
    "multiprocessing, forked": (
        "import multiprocessing as m; m.get_context('fork').Process(target=print).start()",
        "forks",
    ),
    "ctypes": ("import ctypes; ctypes.CDLL(None).unlink(KEPT.encode())", "native code through"),
    "ctypes.pythonapi": (
        "import ctypes; ctypes.pythonapi.PyRun_SimpleString(b'1')",
        "native code through",
    ),
}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "kept").write_text("as it was", encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", HOSTILE)
def test_a_script_is_stopped_before_it_does_that(name: str, tmp_path: Path, outside: Path) -> None:
    does, said = HOSTILE[name]
    script = f"{HEAD}\ntry:\n    {does}\nexcept BaseException:\n    pass\nos._exit(0)"
    before = everything(outside)
    end = trial(tmp_path, script, str(outside)).end
    assert end.how == "refused"
    assert end.error.startswith(said.format(out=outside)) or said in end.error
    assert everything(outside) == before


ALLOWED = {
    "read": "assert open(KEPT).read() == 'as it was'",
    "list": "assert os.listdir(OUT) == ['kept']",
    "write here": "open('new', 'w').write('x'); assert os.path.exists('new')",
    "make and remove folders": "os.makedirs('a/b'); shutil.rmtree('a')",
    "a temporary file": "import tempfile; tempfile.NamedTemporaryFile().write(b'x')",
    "the null device": "open(os.devnull, 'w').write('x')",
    "a database in memory": "sqlite3.connect(':memory:').execute('CREATE TABLE a (b)')",
    "a database here": "sqlite3.connect('new.db').execute('CREATE TABLE a (b)')",
    "print much": "print('x' * 100_000_000)",
    "a pair of sockets": "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'",
    "a thread": "import threading; t = threading.Thread(target=print); t.start(); t.join()",
    "signals to itself": "os.kill(os.getpid(), 0)",
    "find a library": "import ctypes.util; assert ctypes.util.find_library('c')",
}


@pytest.mark.parametrize("name", ALLOWED)
def test_a_script_may_do_that(name: str, tmp_path: Path, outside: Path) -> None:
    end = trial(tmp_path, f"{HEAD}\n{ALLOWED[name]}", str(outside)).end
    assert (end.how, end.error) == ("script", "")


def test_the_process_ends_though_all_is_caught_and_more_is_registered(
    tmp_path: Path, outside: Path
) -> None:
    script = f"""{HEAD}
import atexit, threading, time
atexit.register(lambda: os.write(1, b"never") and time.sleep(1000))
threading.Thread(target=lambda: time.sleep(1000)).start()
while True:
    try:
        os.remove(KEPT)
    except BaseException:
        pass
"""
    end = trial(tmp_path, script, str(outside)).end
    assert (end.how, end.error) == ("refused", f"deletes {outside}/kept")
