"""Acting when somebody has imported a module, and not before."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def when_imported(
    name: str,
    act: Callable[[], None],
    *,
    around: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Waiting:
    """Calls `act` as soon as the module `name` has been imported whole; now, if it has been.

    The module's own code runs inside `around()`.

    Until then one finder stands first on `sys.meta_path`. It finds nothing itself: it asks the
    others, and leaves when they have found the module, which keeps its own loader and spec.
    """
    module = sys.modules.get(name)
    finder = _Finder(name, act, around)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        act()
    else:
        sys.meta_path.insert(0, finder)
    return Waiting(finder)


class Waiting:
    """A handle: waits until it is removed."""

    def __init__(self, finder: MetaPathFinder) -> None:
        self._finder = finder

    def remove(self) -> None:
        """Waits no longer."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)


class _Finder(MetaPathFinder):
    def __init__(
        self,
        name: str,
        act: Callable[[], None],
        around: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._name = name
        self._act = act
        self.around = around
        self._asking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name or self._asking:
            return None
        self._asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking = False
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return None  # somebody else's error to raise
        spec.loader = _Loader(spec.loader, self)
        return spec

    def imported(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._act()


class _Loader(Loader):
    """The module's own loader; afterwards the finder is told."""

    def __init__(self, real: Loader, finder: _Finder) -> None:
        self._real = real
        self._finder = finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module finds its own loader when its code begins.
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        with self._finder.around():
            self._real.exec_module(module)
        # An import that fails may be tried again, so the finder stays until one has succeeded.
        self._finder.imported()
