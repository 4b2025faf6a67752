"""Processes that the script starts.

- `spawn` and `forkserver` (torch.multiprocessing.spawn): the child is told, in the data that Python
  hands to it, to follow what it trains as well. It writes a file of its own.
- `fork`: everything is off in the child (`Session.abandon`).
- Other Python processes: named at the end, with the command that would follow them.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nethook.running.importing import when_imported
from nethook.running.options import RunOptions
from nethook.running.program import Program
from nethook.running.session import Session

_BEGIN = """\
import sys
sys.path.append({root!r})
try:
    from nethook.running.children import begin_child
    begin_child({options!r})
except Exception:
    pass
finally:
    sys.path.remove({root!r})
"""


class Children:
    """What is known of the processes that the script has started."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._commands: list[str] = []

    def started(self, args: object) -> None:
        """A process is about to be started by `subprocess`."""
        words = [os.fsdecode(each) for each in args] if isinstance(args, list | tuple) else []
        if words and _is_python(words[0]):
            script = _script(words[1:])
            if script is not None and script[0] not in ("-c", "-m nethook"):
                self._commands.append(shlex.join(script))

    def notes(self) -> list[str]:
        """What a person should know of them at the end."""
        if not self._commands:
            return []
        count = len(self._commands)
        what = "1 other Python process was" if count == 1 else f"{count} Python processes were"
        return [
            f"{what} started and not followed; this would: nethook run {self._commands[0]}"
            + (" (and so on)" if len(set(self._commands)) > 1 else "")
        ]


def follow_children(options: RunOptions, program: Program) -> Children:
    """Follows the processes that this one starts from now on, as far as that can be done."""
    children = Children(program)
    when_imported("multiprocessing.spawn", lambda: _tell_spawned(options))
    when_imported("subprocess", lambda: _watch_started(children))
    return children


def begin_child(text: str) -> None:
    """Called in a spawned process, before it has read anything of the script."""
    from multiprocessing import util

    from nethook.running.follow import start_watching

    options = RunOptions.from_json(text)
    session = Session(options, start_watching)
    follow_children(options, Program(sys.argv[0]))
    when_imported("torch", session.begin)
    # The way in which processes of multiprocessing end; `atexit` is not asked in all of them.
    util.Finalize(None, session.end, exitpriority=-100)


class _Told:
    """An entry in the data for a spawned process; reading it begins to follow there."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        root = str(Path(__file__).parents[2])
        return exec, (_BEGIN.format(root=root, options=self._options.to_json()),)


def _tell_spawned(options: RunOptions) -> None:
    from multiprocessing import spawn

    original = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        data: dict[str, Any] = original(name)
        data["nethook"] = _Told(options)
        return data

    spawn.get_preparation_data = get_preparation_data


def _watch_started(children: Children) -> None:
    import subprocess

    popen: Any = subprocess.Popen
    original = popen._execute_child

    def _execute_child(self: Any, args: Any, *rest: Any, **named: Any) -> Any:
        children.started(args)
        return original(self, args, *rest, **named)

    popen._execute_child = _execute_child


def _is_python(word: str) -> bool:
    return word == sys.executable or os.path.basename(word).startswith("python")  # noqa: PTH119


def _script(words: Sequence[str]) -> list[str] | None:
    """The script and its arguments, of the words after `python`; None where there is none."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "-c" or (word.startswith("-c") and not word.startswith("--")):
            return None
        if word == "-m":
            return None if words[at + 1 : at + 2] == ["nethook"] else list(words[at:])
        if not word.startswith("-"):
            return list(words[at:])
        at += 2 if word in ("-W", "-X") else 1
    return None
