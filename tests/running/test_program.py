"""A program under `nethook run` finds what it finds under `python`, and ends as it ends there."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import pytest

from tests.running.both import bare, environment, same, under

IDENTITY = '''\
"""What a program can see of how it was started."""
import sys
main = sys.modules["__main__"]
print([name for name in globals()])
print(__name__, __file__, __cached__, __package__, __annotations__)
print(__spec__ and (__spec__.name, __spec__.origin, __spec__.parent, __spec__.cached))
print(type(__loader__), __loader__ and getattr(__loader__, "path", None), __builtins__)
print(main.__dict__ is globals(), type(main), main.__doc__)
print(sys.argv, sys.path, sys.orig_argv[1:], sys.flags)
print(sys.meta_path if "-" in sys.argv else "")
loaded = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names
print(sorted(loaded - {"nethook", "__mp_main__"}))
x: int = 1
class Thing: pass
import pickle, inspect
print(pickle.loads(pickle.dumps(Thing)) is Thing, Thing.__module__, main.__annotations__)
print(inspect.getsource(Thing) if not __file__.startswith("<") else "")
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the same program as a script, a link, a package, a folder and an archive."""
    (tmp_path / "script.py").write_text(IDENTITY)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "link.py").symlink_to(tmp_path / "script.py")
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(IDENTITY)
    (package / "module.py").write_text("from . import __name__ as parent\n" + IDENTITY)
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", "import sys\nprint(__file__, sys.argv, sys.path[0])\n")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("script.py",),
        ("./script.py", "--to", "x", "-m", "y", "--", "--help"),
        ("sub/../script.py",),
        ("sub/link.py",),
        ("package",),
        ("archive.zip", "a"),
        ("-m", "package", "a"),
        ("-m", "package.module", "--quiet"),
        ("-m", "script"),
    ],
    ids=" ".join,
)
def test_a_program_finds_itself_as_ever(folder: Path, command: tuple[str, ...]) -> None:
    same(under(*command, cwd=folder), bare(*command, cwd=folder))


def test_an_absolute_path_and_the_standard_input(folder: Path) -> None:
    script = str(folder / "script.py")
    same(under(script, cwd=folder / "sub"), bare(script, cwd=folder / "sub"))
    text = IDENTITY.replace('print(sys.meta_path if "-" in sys.argv else "")', "")
    one, other = under("-", "a", cwd=folder, stdin=text), bare("-", "a", cwd=folder, stdin=text)
    # A class of the standard input has no source, which is an error in both.
    assert (one.code, one.out) == (other.code, other.out)


@pytest.mark.parametrize(
    "options", [("-W", "error"), ("-X", "dev"), ("-O",), ("-u",), ("-P",)], ids=" ".join
)
def test_options_of_python_go_before_nethook(folder: Path, options: tuple[str, ...]) -> None:
    program = IDENTITY.replace("sys.path, ", "").replace("sys.orig_argv[1:], ", "")
    (folder / "script.py").write_text(
        program + "import warnings\nprint(__debug__, sys.warnoptions, sys.path[1:] == [])\n"
        "warnings.warn('once')\n"
    )
    one = under("script.py", options=options, cwd=folder)
    same(one, bare("script.py", options=options, cwd=folder))


ENDS = r"""
#: exit
import sys; sys.exit()
#: exit 3
import sys; sys.exit(3)
#: exit with a text
import sys; sys.exit('a text')
#: exit True
import sys; sys.exit(True)
#: exit with a tuple
raise SystemExit((1, 2))
#: os._exit
import os; print('lost'); os._exit(4)
#: not flushed
import sys; sys.stdout.write('not flushed'); sys.exit(0)
#: an error
raise ValueError('plain')
#: an error in a function
def f():
    1 / 0
f()
#: a cause
try:
    1 / 0
except ZeroDivisionError as e:
    raise ValueError('second') from e
#: a context
try:
    1 / 0
except ZeroDivisionError:
    raise ValueError('second')
#: no context
try:
    1 / 0
except ZeroDivisionError:
    raise ValueError('second') from None
#: groups
def f(n):
    raise ValueError(n)
found = []
for n in range(2):
    try:
        f(n)
    except ValueError as e:
        found.append(e)
raise ExceptionGroup('several', [*found, ExceptionGroup('in', found)])
#: a note
e = ValueError('noted')
e.add_note('a note')
raise e
#: syntax
def f(:
    pass
#: syntax of an import
import broken
#: coding
# -*- coding: latin-1 -*-
print('\xe9')
raise ValueError
#: no such module
import no_such_module
#: interrupted
raise KeyboardInterrupt
#: excepthook
import sys
sys.excepthook = lambda *e: print('mine', e[0], e[1], e[2].tb_lineno)
1 / 0
#: failing excepthook
import sys
def hook(*e):
    raise TypeError('in the hook')
sys.excepthook = hook
1 / 0
#: exiting excepthook
import sys
def hook(*e):
    sys.exit(7)
sys.excepthook = hook
1 / 0
#: error in a thread
import threading
t = threading.Thread(target=lambda: 1 / 0)
t.start()
t.join()
#: a thread that lasts
import threading, time
def late():
    time.sleep(0.2)
    print('late')
threading.Thread(target=late).start()
print('main is done')
#: atexit
import atexit, sys
atexit.register(print, 1)
atexit.register(lambda: print(2, file=sys.stderr))
atexit.register(int, 'x')
#: warnings
import warnings
warnings.warn('here')
warnings.warn('above', stacklevel=2)
def f():
    warnings.warn('far above', stacklevel=4)
f()
warnings.warn('old', DeprecationWarning)
#: deleted at the end
import sys
class Last:
    def __del__(self): print('deleted')
last = Last()
#: no stderr
import sys
sys.stderr = None
print('no stderr')
#: closed stdout
import sys
sys.stdout.close()
#: signals
import signal
print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
#: processes
import subprocess, sys
print(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout)
subprocess.run(['/no/such/program'])
"""
# One program a title.
PROGRAMS = dict(part.split("\n", 1) for part in ENDS.split("#: ")[1:])


@pytest.mark.parametrize("title", PROGRAMS)
def test_a_program_ends_as_ever(tmp_path: Path, title: str) -> None:
    (tmp_path / "script.py").write_text(PROGRAMS[title], encoding="latin-1")
    (tmp_path / "broken.py").write_text("def f(:\n    pass\n")
    same(under("script.py", cwd=tmp_path), bare("script.py", cwd=tmp_path))


@pytest.mark.parametrize("program", ["1 / 0", "def f(:", "import sys; sys.exit('text')"])
def test_a_module_ends_as_ever(tmp_path: Path, program: str) -> None:
    (tmp_path / "module.py").write_text(program + "\n")
    same(under("-m", "module", cwd=tmp_path), bare("-m", "module", cwd=tmp_path))


@pytest.mark.parametrize("command", [("no_such.py",), ("-m", "no_such"), ("-m", "os.path.x")])
def test_what_is_not_there_is_named_as_ever(tmp_path: Path, command: tuple[str, ...]) -> None:
    same(under(*command, cwd=tmp_path), bare(*command, cwd=tmp_path))


SPAWNS = """\
import multiprocessing as mp
print("imported as", __name__)
class Job:
    def __init__(self, n): self.n = n
def work(job, queue):
    import sys
    queue.put((job.n, __name__, sorted(set(sys.argv)), sys.modules["__main__"].__name__))
if __name__ == "__main__":
    for method in ("spawn", "forkserver", "fork"):
        context = mp.get_context(method)
        queue = context.SimpleQueue()
        child = context.Process(target=work, args=(Job(1), queue))
        child.start()
        print(queue.get(), flush=True)
        child.join()
        print(child.exitcode)
"""


@pytest.mark.parametrize("command", [("script.py", "a"), ("-m", "script", "a")], ids=" ".join)
def test_processes_of_every_kind_find_the_script(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "script.py").write_text(SPAWNS)
    same(under(*command, cwd=tmp_path), bare(*command, cwd=tmp_path))


WAITS = """\
import atexit, time
atexit.register(print, "atexit")
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_it_as_ever(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "script.py").write_text(WAITS)
    ends = []
    for way in ([], ["-m", "nethook", "run"]):
        child = subprocess.Popen(
            [sys.executable, *way, "script.py"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.1)
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        ends.append((child.returncode, out, err.partition("── nethook ──")[0]))
    assert ends[0] == ends[1]
    assert ends[0][0] == -number  # which a shell shows as 128 + number: 130 for Ctrl-C


def test_a_forked_child_says_nothing(tmp_path: Path) -> None:
    program = """\
        import os
        if os.fork() == 0:
            print("child")
        else:
            os.wait()
            print("parent")
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(program))
    one = under("script.py", cwd=tmp_path)
    same(one, bare("script.py", cwd=tmp_path))
    assert one.closing.count("── nethook ──") == 1
