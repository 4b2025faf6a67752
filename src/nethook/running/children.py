"""Processes that the script starts.

- `spawn` and `forkserver` (torch.multiprocessing.spawn): the child is told, in the data that Python
  hands to it, to follow what it trains as well.
- The same script started again by `subprocess` (launchers of ranks and sweeps do that): it is
  started under nethook.
- `fork`: everything is off in the child (`Session.abandon`).
- Other Python processes: named at the end, with the command that would follow them.

A child that is followed writes a file of its own and prints nothing.
"""

from __future__ import annotations

import inspect
import os
import shlex
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from nethook.hooks.imports import when_imported
from nethook.running.detecting.following import Session
from nethook.running.imports import keep_apart, kept_apart, leave_to_script
from nethook.running.options import RunOptions
from nethook.running.paths import working_folder
from nethook.running.program import Program
from nethook.running.runner import run_program
from nethook.runs.secrets.masking import masked_text

_ROOT: Final = str(Path(__file__).parents[2])
# In a new process the folder that it is started in comes first. What lies there is for the script.
_SPAWNED: Final = """\
import sys
before = list(sys.modules)
first = [] if sys.flags.safe_path else sys.path[:1]
del sys.path[:len(first)]
sys.path.append({root!r})
try:
    from importlib import import_module as load
    apart = {apart!r}
    if apart is not None:
        from nethook.running.imports import adopt
        load = adopt(*apart, before)
    load("nethook.running.children").begin_spawned({options!r})
except Exception:
    pass
finally:
    sys.path[:0] = first
    sys.path.remove({root!r})
"""
_AGAIN: Final = (
    "import sys; sys.flags.safe_path or sys.path.pop(0); sys.path.append({root!r}); "
    "from nethook.running.children import run_again; run_again({options!r})"
)


class Children:
    """The processes that the script starts, from now on.

    Arguments:
        options: how they are followed.
        program: the script.
    """

    def __init__(self, options: RunOptions, program: Program) -> None:
        self._options = options
        self._program = program
        self._folder = Path(working_folder())
        self._strangers: list[str] = []
        when_imported("multiprocessing.spawn", self._tell_spawned)
        when_imported("subprocess", self._see_started)

    def notes(self) -> list[str]:
        """What a person should know of those that were not followed."""
        if not self._strangers:
            return []
        count = len(self._strangers)
        what = "Another Python process was" if count == 1 else f"{count} Python processes were"
        more = " (and so on)" if len(set(self._strangers)) > 1 else ""
        return [f"{what} started and not followed. This would: {self._strangers[0]}{more}"]

    # subprocess

    def _see_started(self) -> None:
        import subprocess

        # `Popen` itself stays the class that scripts derive from and compare with. Everything of
        # `subprocess` comes through this method of it; where a Python has none, or another form of
        # it, processes are started as ever and are not followed.
        popen: Any = subprocess.Popen
        original = popen._execute_child
        signature = inspect.signature(original)

        def _execute_child(*args: Any, **named: Any) -> Any:
            try:
                call = signature.bind(*args, **named)
                self._look_at(call.arguments)
                args, named = call.args, call.kwargs
            except Exception:
                pass  # another form of call than is known here: it goes its way
            return original(*args, **named)

        popen._execute_child = _execute_child

    def _look_at(self, call: dict[str, Any]) -> None:
        """Has a process started under nethook, or remembers it as a stranger."""
        words = call["args"]
        if call.get("shell") or not isinstance(words, list | tuple) or not words:
            return
        words = [os.fsdecode(word) for word in words]
        executable = call.get("executable") or words[0]
        if os.path.basename(os.fsdecode(executable)).startswith("python"):  # noqa: PTH119
            start = _where_script(words)
            if start is None:
                return
            folder = Path(os.fsdecode(call.get("cwd") or os.curdir)).absolute()
            if self._is_same(words[start:], folder):
                text = _AGAIN.format(root=_ROOT, options=self._options.to_json())
                call["args"] = [*words[:start], "-c", text, *words[start:]]
            elif not _is_installed(words[start], folder):
                python = [] if words[1:start] == [] else [words[0], *words[1:start], "-m"]
                said = shlex.join([*python, "nethook", "run", *words[start:]])
                self._strangers.append(masked_text(said))

    def _is_same(self, words: Sequence[str], folder: Path) -> bool:
        if self._program.module or words[0] == "-m":
            return self._program.module and list(words[:2]) == ["-m", self._program.name]
        try:
            mine = Path(self._folder, self._program.name)
            return mine.samefile(Path(folder, words[0]))
        except OSError:
            return False

    # multiprocessing

    def _tell_spawned(self) -> None:
        from multiprocessing import spawn

        original = spawn.get_preparation_data
        told = _Told(self._options)

        def get_preparation_data(name: str) -> dict[str, Any]:
            data: dict[str, Any] = original(name)
            data["nethook"] = told  # Python reads the entries that it knows
            return data

        spawn.get_preparation_data = get_preparation_data


class _Told:
    """An entry in the data for a spawned process; reading it begins to follow there."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        text = _SPAWNED.format(root=_ROOT, options=self._options.to_json(), apart=kept_apart())
        return exec, (text,)


def begin_spawned(text: str) -> None:
    """In a spawned process, before it has read anything of the script: follow what it trains."""
    from multiprocessing import util

    from nethook.running.detecting.watches import start_watching

    session = Session(RunOptions.from_json(text), start_watching)
    when_imported("torch", session.begin)
    # The way in which processes of multiprocessing end; `atexit` is not asked in all of them.
    util.Finalize(None, session.end, exitpriority=-100)
    leave_to_script()


def run_again(text: str) -> None:
    """In a process that was started in the place of the same script: run it, and follow it."""
    options = RunOptions.from_json(text)
    words = sys.argv[1:]
    program = Program(words[0], tuple(words[1:]))
    if words[0] == "-m":
        program = Program(words[1], tuple(words[2:]), module=True)
    if again := keep_apart(program.folder, sys.path):
        again(__name__).run_again(text)  # this module was imported before that
        return
    from nethook.running.detecting.watches import start_watching

    session = Session(options, start_watching)
    Children(options, program)
    run_program(program, session, lambda _: None)


def _is_installed(script: str, folder: Path) -> bool:
    """Whether a script is a part of a library: one of its helpers, and nothing that trains."""
    if script == "-m":
        return False
    path = Path(folder, script)
    return any(path.is_relative_to(root) for root in _installed())


@cache
def _installed() -> tuple[str, ...]:
    """Where Python and its packages are. To ask imports a module, so it is asked when needed."""
    return tuple(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib"))


def _where_script(words: Sequence[str]) -> int | None:
    """Where in `python …` the script begins, or `-m`; None where no script is run."""
    index = 1
    while index < len(words):
        word = words[index]
        if word == "-m":
            return None if words[index + 1 : index + 2] == ["nethook"] else index
        if not word.startswith("-"):
            return index
        if word == "-" or "c" in word.lstrip("-")[:1] or word.startswith("--"):
            return None  # -c text, the standard input, or a wish for help
        index += 2 if word in ("-W", "-X") else 1
    return None
