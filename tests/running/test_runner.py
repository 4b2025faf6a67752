"""A run from its first to its last line: the order of what happens, and the code at the end.

Without torch, so that a process takes no time to begin.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import run_whole
from tests.running.both import environment

# A session that says when it ends, and a verdict that says what it was told.
AROUND = """
import sys
from nethook.running.options import RunOptions
from nethook.running.program import Program
from nethook.running.runner import run_program

class Session:
    mine = True
    options = RunOptions("run.db", sinks={sinks})
    def begin(self): print("session begins")
    def end(self, error="", *, interrupted=False): print("session ends")

def close(outcome): print("closed", repr(outcome.error), outcome.interrupted)
def code_of(outcome): return {code}

run_program(Program("script.py"), Session(), close, code_of=code_of if {with_code} else None)
"""


def run(
    folder: Path,
    script: str,
    code: int | None = None,
    *,
    with_code: bool = False,
    sinks: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script, encoding="utf-8")
    return run_whole(
        [sys.executable, "-c", AROUND.format(code=code, with_code=with_code, sinks=sinks)],
        cwd=folder,
        env=environment(),
    )


def test_the_verdict_comes_after_all_that_the_script_has_registered(tmp_path: Path) -> None:
    script = "import atexit; atexit.register(print, 'at exit'); print('script')"
    done = run(tmp_path, script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["script", "at exit", "session ends", "closed '' False"]


def test_for_trackers_the_run_ends_before_what_the_script_has_registered(tmp_path: Path) -> None:
    script = "import atexit; atexit.register(print, 'the tracker ends'); print('script')"
    done = run(tmp_path, script, sinks=("wandb",))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:3] == ["script", "session ends", "the tracker ends"]
    assert done.stdout.splitlines()[-1] == "closed '' False"


@pytest.mark.parametrize(
    ("script", "code", "error", "shown"),
    [
        ("1 / 0", 1, "ZeroDivisionError: division by zero", True),
        ("import sys; sys.exit(5)", 5, "sys.exit(5)", False),
        ("import sys; sys.exit('bad')", 1, "sys.exit('bad')", False),
        ("import sys; sys.exit()", 0, "", False),
        ("def f(:", 1, "SyntaxError: ", True),
    ],
)
def test_a_script_ends_as_without_nethook(
    tmp_path: Path, script: str, code: int, error: str, shown: bool
) -> None:
    done = run(tmp_path, script)
    assert done.returncode == code
    assert done.stdout.splitlines()[-1].startswith(f"closed {error!r}"[:-1])
    assert done.stderr.count("Traceback") + done.stderr.count("SyntaxError") == shown
    assert "nethook" not in done.stderr


def test_ctrl_c_is_seen_by_the_verdict_and_by_the_parent(tmp_path: Path) -> None:
    done = run(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    assert done.returncode == -2
    assert done.stdout.splitlines() == ["session ends", "closed 'KeyboardInterrupt' True"]


@pytest.mark.parametrize(("code", "ended"), [(3, 3), (None, 5)])
def test_another_code_can_be_asked_for(tmp_path: Path, code: int | None, ended: int) -> None:
    done = run(tmp_path, "import sys; sys.exit(5)", code, with_code=True)
    assert done.returncode == ended
    assert done.stdout.splitlines()[-1] == "closed 'sys.exit(5)' False"


def test_a_process_that_was_forked_says_nothing(tmp_path: Path) -> None:
    script = "import os, sys\nif os.fork() == 0: sys.exit(0)\nos.wait()\nprint('parent')"
    lines = run(tmp_path, script).stdout.splitlines()
    assert lines.count("closed '' False") == 1
