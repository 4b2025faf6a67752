"""Running code of the script's aside: stopped before it does anything that could be noticed.

A forward may print, write a log, open a file, start a thread or count its calls in a global. Run
again for an experiment, it would do so once more than the script has it do. So Python asks us
before each call of a function that is written in C (`sys.setprofile`, for this thread and this
block alone), and those that reach outside the process raise `_StoppedError` before anything has
happened.
Globals cannot be guarded like that: those of the script's own modules and classes are noted before,
compared after and put back, and a model that writes them is not run aside again.
"""

from __future__ import annotations

import _thread
import gc
import io
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import BuiltinFunctionType, FrameType, ModuleType
from typing import Any, Final

import torch
from torch import nn

from nethook.examining.limits import Deadline
from nethook.examining.refusals import NotReplayableError, OutOfTimeError
from nethook.hooks.process.source_line import line_of_script
from nethook.restoring.python_state import every_module
from nethook.restoring.undo import undone

GRACE: Final = 0.5
"""Seconds after the deadline until a run is cut off in its midst; between runs it is exact."""

_FORBIDDEN: Final[dict[object, str]] = {
    print: "prints",
    input: "asks for input",
    open: "opens a file",
    io.open_code: "opens a file",
    breakpoint: "starts a debugger",
    _thread.start_new_thread: "starts a thread",
}
# Modules in C whose functions reach outside the process, each with what that is called.
_OUTSIDE: Final = {
    "posix": "uses the file system or a process",
    "nt": "uses the file system or a process",
    "_socket": "uses the network",
    "_ssl": "uses the network",
    "_sqlite3": "uses a database",
    "_posixsubprocess": "starts a process",
    "_winapi": "starts a process",
    "_multiprocessing": "talks to another process",
    "_posixshmem": "shares memory",
    "mmap": "maps a file",
    "fcntl": "locks a file",
    "_signal": "uses signals",
    "atexit": "registers something for the end of the process",
}
# Of these modules, what only looks.
_HARMLESS: Final = frozenset(
    {"fspath", "getpid", "getppid", "getcwd", "cpu_count", "getenv", "stat", "lstat", "fstat",
     "sched_getaffinity", "urandom", "get_terminal_size", "uname", "times", "getuid", "geteuid",
     "sysconf", "getsignal", "valid_signals", "isatty", "get_blocking", "strerror", "getsockname"}
)  # fmt: skip
# Of objects that reach outside, what ends that.
_ENDS: Final = frozenset({"close", "detach", "fileno", "__exit__"})
_WRITES: Final = frozenset({"write", "writelines", "truncate", "flush", "send", "sendall", "read"})


# Functions in Python, by their code: a thread has noted its start before anything in C is called,
# and the writers of torch open their file in a constructor, which nobody is asked about.
_IN_PYTHON: Final = {
    threading.Thread.start.__code__: "starts a thread",
    torch.save.__code__: "writes a file",
    torch.jit.save.__code__: "writes a file",
}


class _StoppedError(BaseException):
    """Something is about to happen that could be noticed. Not caught by `except Exception`."""


@contextmanager
def ran_aside(model: nn.Module, deadline: Deadline | None = None) -> Iterator[None]:
    """A block in which a copy of the script's model may run.

    Raises:
        NotReplayableError: it was stopped, or it has written globals; they are as they were.
        OutOfTimeError: it took far too long.
    """
    if sys.getprofile() is not None:
        raise NotReplayableError("a profiler is running")
    noted = _Globals(model)
    try:
        with undone([noted.put_back, _Hidden().put_back]), _guarded(deadline):
            yield
    except _StoppedError as stopped:
        raise NotReplayableError(f"its forward {stopped}") from None
    except _LateError:
        raise OutOfTimeError("one run of it takes too long") from None
    if noted.changed:
        raise NotReplayableError(f"its forward writes {noted.changed}")


class _LateError(BaseException):
    """The time is long over."""


@contextmanager
def _guarded(deadline: Deadline | None) -> Iterator[None]:
    def ask(frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            reason = _reason(argument)
            if reason and not _in_signal_handler(frame):
                raise _StoppedError(f"{reason} ({line_of_script(or_library=True)})")
        elif event == "call":
            reason = _IN_PYTHON.get(frame.f_code, "")
            if reason and not _in_signal_handler(frame):
                raise _StoppedError(f"{reason} ({line_of_script(or_library=True)})")
            if deadline is not None and deadline.left() < -GRACE:
                raise _LateError

    # What the collector ends are objects of the script's, whose last words must not be stopped.
    collects = gc.isenabled()
    try:
        gc.disable()
        sys.setprofile(ask)
        yield
    finally:
        sys.setprofile(None)
        if collects:
            gc.enable()


def _in_signal_handler(frame: FrameType | None) -> bool:
    """Whether a handler of a signal runs, which may come at any time and is the script's."""
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    while codes and frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


def _reason(function: Any) -> str:
    """What a function in C would do that could be noticed; "" for nearly all."""
    try:
        forbidden = _FORBIDDEN.get(function)
    except TypeError:  # cannot be hashed
        forbidden = None
    if forbidden is not None:
        return forbidden
    holder = getattr(function, "__self__", None)
    if holder is None or isinstance(holder, ModuleType):
        module = getattr(function, "__module__", None)
        if module not in _OUTSIDE or function.__name__ in _HARMLESS:
            return ""
        # Parts of `os.path` that are written in C from Python 3.12 on: they only look.
        return "" if function.__name__.startswith("_path_") else _OUTSIDE[module]
    if isinstance(holder, io.IOBase) and not isinstance(holder, io.BytesIO | io.StringIO):
        return "writes to a file or a stream" if function.__name__ in _WRITES else ""
    if function.__name__ in _ENDS or not isinstance(function, BuiltinFunctionType):
        return ""
    kind: Any = type(holder)
    return _reason_of(kind)


@lru_cache(maxsize=1024)
def _reason_of(kind: type) -> str:
    """What methods in C of a class do that could be noticed, if it comes from such a module."""
    outside = [_OUTSIDE[base.__module__] for base in kind.__mro__ if base.__module__ in _OUTSIDE]
    return outside[0] if outside else ""


# -- warnings --------------------------------------------------------------------------------------


class _Hidden:
    """Warnings are not shown, and count as not shown afterwards.

    Filters are left as they are: Python shows every warning again when they change. What it has
    noted is in a dict of the module that warned, under text, category and line.
    """

    def __init__(self) -> None:
        self._show: Callable[..., Any] = vars(warnings)[_SHOW]
        self._thread = threading.get_ident()
        self._hidden: list[Any] = []
        vars(warnings)[_SHOW] = self._hide

    def _hide(self, message: Any) -> None:
        if threading.get_ident() == self._thread:
            self._hidden.append(message)
        else:
            self._show(message)

    def put_back(self) -> None:
        """They are shown again."""
        vars(warnings)[_SHOW] = self._show
        if not self._hidden:
            return
        keys = {(str(one.message), one.category, one.lineno) for one in self._hidden}
        keys |= {(*key[:2], 0) for key in keys}
        once = getattr(warnings, "onceregistry", {})
        for key in keys:
            once.pop(key[:2], None)
        for module in list(sys.modules.values()):
            seen = getattr(module, "__dict__", {}).get("__warningregistry__")
            if isinstance(seen, dict):
                for key in keys:
                    seen.pop(key, None)


_SHOW: Final = "_showwarnmsg"


# -- globals ---------------------------------------------------------------------------------------


class _Globals:
    """Globals of the modules and classes that a model is written in, as they are now.

    Of what they are bound to, containers are looked into, and objects of classes of those modules:
    a counter, a list of losses. Deeper than that nothing is looked at.
    """

    def __init__(self, model: nn.Module) -> None:
        self.changed = ""
        """What was found to be written, at `put_back`."""
        self._spaces: list[tuple[str, Any, dict[str, Any]]] = []
        self._contents: list[tuple[str, Any, Any]] = []
        modules = {type(module).__module__ for module in every_module(model)}
        mine = {name for name in modules if not _is_library(name)}
        for name in mine:
            self._note(f"globals of {name}", sys.modules[name], mine)
        classes = {
            kind
            for module in every_module(model)
            for kind in type(module).__mro__
            if kind.__module__ in mine
        }
        for kind in classes:
            self._note(f"attributes of {kind.__qualname__}", kind, mine)

    def _note(self, name: str, holder: Any, mine: set[str]) -> None:
        space = dict(vars(holder))
        self._spaces.append((name, holder, space))
        for key, value in space.items():
            if key.startswith("__"):
                continue
            self._content(f"{name}: {key}", value)
            kind = type(value)
            if kind.__module__ in mine and not isinstance(value, nn.Module | type | ModuleType):
                inner = getattr(value, "__dict__", None)
                if type(inner) is dict:
                    self._contents.append((f"{name}: {key}", inner, dict(inner)))
                    for held in inner.values():
                        self._content(f"{name}: {key}", held)

    def _content(self, name: str, value: Any) -> None:
        if type(value) in _CONTAINERS and len(value) <= _MOST:
            self._contents.append((name, value, value.copy()))

    def put_back(self) -> None:
        """Everything as it was; what was found changed is in `changed`."""
        for name, held, before in self._contents:
            if _differs(held, before):
                self.changed = self.changed or name
                _fill(held, before)
        for name, holder, before in self._spaces:
            now = vars(holder)
            keys = [key for key in now if key not in before and not key.startswith("__")]
            other = [key for key in before if now.get(key, _GONE) is not before[key]]
            for key in keys:
                delattr(holder, key)
            for key in other:
                if not key.startswith("__"):
                    setattr(holder, key, before[key])
            changed = [key for key in (*keys, *other) if not key.startswith("__")]
            if changed:
                self.changed = self.changed or f"{name} ({changed[0]})"


_CONTAINERS: Final = (list, dict, set, deque)
_MOST: Final = 10_000
_GONE: Final = object()


def _is_library(module: str) -> bool:
    """Whether a module is not the script's: torch, or installed."""
    loaded = sys.modules.get(module)
    if loaded is None or module.partition(".")[0] in ("torch", "nethook", "builtins"):
        return True
    file = getattr(loaded, "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _differs(held: Any, before: Any) -> bool:
    if len(held) != len(before):
        return True
    if isinstance(held, dict):
        return any(held.get(key, _GONE) is not value for key, value in before.items())
    if isinstance(held, set):
        return bool(held ^ before)
    return any(now is not then for now, then in zip(held, before, strict=True))


def _fill(held: Any, before: Any) -> None:
    held.clear()
    if isinstance(held, dict | set):
        held.update(before)
    else:
        held.extend(before)
