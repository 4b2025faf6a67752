"""Functions of native code that write files, which Python's audit hooks do not see.

They are wrapped as soon as their modules are imported, and ask the guard first. The list is what a
training script is likely to use; what is not in it is left to the kernel's lock, where there is
one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NoReturn

from nethook.hooks.hook import Hook, Owner
from nethook.hooks.imports import when_imported
from nethook.running.trying.sandbox.guard import Guard, is_harmless

# The module, the function, and which argument is the path.
_WRITERS: Final = (
    ("torch", "save", 1, "f"),
    ("torch.serialization", "save", 1, "f"),
    ("torch.jit", "save", 1, "f"),
    ("torch", "from_file", 0, "filename"),
    ("safetensors", "serialize_file", 1, "filename"),
    ("safetensors.torch", "save_file", 1, "filename"),
    ("safetensors.numpy", "save_file", 1, "filename"),
    ("h5py.h5f", "create", 0, "name"),
    ("cv2", "imwrite", 0, "filename"),
    ("torchaudio", "save", 0, "uri"),
)
# These start processes or connect from native code; the second is the first, taken from there.
_STARTS: Final = (("_posixsubprocess", "fork_exec"), ("subprocess", "_fork_exec"))
_REFUSED: Final = (("torch.distributed", "init_process_group", "connects to other processes"),)


def guard_native_writers(guard: Guard) -> None:
    """Has these functions ask a guard, those of modules that are not imported yet as well."""
    owner = Owner("nethook run --try-fix")
    for module, name, place, keyword in _WRITERS:
        writer = _Writer(owner, f"{module}.{name}", guard, place, keyword)
        when_imported(module, partial(_wrap, module, name, writer))
    for module in ("sqlite3", "sqlite3.dbapi2"):
        database = _Database(owner, f"{module}.connect", guard)
        when_imported(module, partial(_wrap, module, "connect", database))
    for module, name in _STARTS:
        start = _Start(owner, f"{module}.{name}", guard)
        when_imported(module, partial(_wrap, module, name, start))
    for module, name, what in _REFUSED:
        refusal = _Refusal(owner, f"{module}.{name}", guard, what)
        when_imported(module, partial(_wrap, module, name, refusal))


def _wrap(module: str, name: str, hook: Hook) -> None:
    from nethook.hooks.wrapped import WrappedFunction

    if callable(vars(sys.modules[module]).get(name)):
        WrappedFunction(module, name, hook)


class _Writer(Hook):
    """A function that writes to a path."""

    __slots__ = ("_guard", "_keyword", "_place")

    def __init__(self, owner: Owner, address: str, guard: Guard, place: int, keyword: str) -> None:
        super().__init__(owner, address)
        self._guard = guard
        self._place = place
        self._keyword = keyword

    def __call__(self, original: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Asks, and writes."""
        path = args[self._place] if len(args) > self._place else named.get(self._keyword)
        if isinstance(path, str | bytes) or hasattr(path, "__fspath__"):
            self._guard.check_write(path)
        return original(*args, **named)


class _Database(Hook):
    """Opening a database: the audit hook sees that, and not what is attached to it later."""

    __slots__ = ("_guard",)

    def __init__(self, owner: Owner, address: str, guard: Guard) -> None:
        super().__init__(owner, address)
        self._guard = guard

    def __call__(self, original: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Opens it."""
        connection = original(*args, **named)
        self._guard.check_statements(connection)
        return connection


class _Start(Hook):
    """Starting a process from native code."""

    __slots__ = ("_guard",)

    def __init__(self, owner: Owner, address: str, guard: Guard) -> None:
        super().__init__(owner, address)
        self._guard = guard

    def __call__(self, original: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Starts one that only prints; ends this process instead of any other."""
        command, programs = (*args, None, None)[:2]
        if not (isinstance(programs, tuple) and programs and is_harmless(programs[0], command)):
            self._guard.stop("starts a process")
        return original(*args, **named)


class _Refusal(Hook):
    """A function that is not called in a trial."""

    __slots__ = ("_guard", "_what")

    def __init__(self, owner: Owner, address: str, guard: Guard, what: str) -> None:
        super().__init__(owner, address)
        self._guard = guard
        self._what = what

    def __call__(self, original: Callable[..., Any], *args: Any, **named: Any) -> NoReturn:
        """Ends the process."""
        self._guard.stop(self._what)
