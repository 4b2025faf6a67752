"""Nethook's imports, kept apart from the files that lie beside a script.

`python` puts a script's folder first on `sys.path`. A `sqlite3.py` or `typer.py` there is what the
script means by that name, and never what nethook means. Both are served:

- The names that the folder takes from others are known before the script runs. As a rule there are
  none; then nothing here does anything.
- Of these names `sys.modules` shows the script's modules. While an import of nethook's runs, with
  all that it imports in turn, it shows nethook's instead, found without the script's folder.
- Which imports are nethook's is told by where they stand: its modules get an `__import__` of their
  own. Nothing of the script's is touched, nor is `builtins`.
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_US: Final = "nethook"
_ROOT: Final = str(Path(__file__).parents[2])
# Of these a process has one: nethook measures with the script's, whatever that is.
_SHARED: Final = frozenset({"torch", "numpy"})


def keep_apart(folder: str | None, path: Sequence[str]) -> Callable[[str], Any] | None:
    """Keeps nethook's imports apart from the modules of a folder.

    Arguments:
        folder: what will be the first of `sys.path`; None where nothing is put there.
        path: `sys.path` without it.

    Returns:
        None where there is nothing to keep apart, or it is kept apart already. Otherwise what
        imports a module of nethook's once more: those that are loaded do not know of it.
    """
    if folder is None or kept_apart() is not None:
        return None
    # Absolute, for the script may change the folder it works in.
    clean = [os.path.abspath(entry) for entry in path if not _same(entry, folder)]  # noqa: PTH100
    names = taken_names(folder, clean) - set(_at_start())
    return adopt(sorted(names), clean, _at_start()) if names else None


def adopt(
    names: Iterable[str], path: Sequence[str], before: Iterable[str]
) -> Callable[[str], Any]:  # fmt: skip
    """Keeps these names apart, found on `path`; the modules `before` are not nethook's doing."""
    worlds = _Worlds(frozenset(names), list(path), frozenset(before))
    worlds.set_aside()
    worlds.forget_us()
    sys.meta_path.insert(0, worlds)
    return worlds.module


def leave_to_script() -> None:
    """The script begins: what nethook's imports have left in `sys.modules` is taken away."""
    if (worlds := _installed()) is not None:
        worlds.set_aside()


def world_of_ours() -> AbstractContextManager[None]:
    """A block of nethook's in which also what it calls imports as nethook does."""
    worlds = _installed()
    return nullcontext() if worlds is None else worlds.shown()


def kept_apart() -> tuple[list[str], list[str]] | None:
    """The names that are kept apart and where nethook finds its own: what `adopt` takes."""
    worlds = _installed()
    return None if worlds is None else (sorted(worlds.names), worlds.path)


def taken_names(folder: str, path: Sequence[str]) -> set[str]:
    """The modules of a folder that hide others, which are on `path`."""
    return {
        name
        for name in _modules_in(folder)
        # What is built into Python comes before every folder.
        if BuiltinImporter.find_spec(name) is None
        and FrozenImporter.find_spec(name) is None
        and _is_regular(PathFinder.find_spec(name, [folder]))
        and PathFinder.find_spec(name, list(path)) is not None
    } - _SHARED


def _installed() -> _Worlds | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, _Worlds)), None)


class _Worlds(MetaPathFinder):
    """The modules of two worlds under the same names: the script's, and nethook's."""

    def __init__(self, names: frozenset[str], path: list[str], before: frozenset[str]) -> None:
        self.names = names
        self.path = path
        self._before = before
        self._hidden: dict[str, ModuleType] = {}  # of the world that is not shown
        self._lock = threading.Lock()
        self._inside = 0  # imports of nethook's that are under way, in all threads
        self._here = threading.local()  # and in this one
        self._import = builtins.__import__
        self._builtins = {**vars(builtins), "__import__": self._import_ours}

    def set_aside(self) -> None:
        """Takes away what nethook has imported so far and the script shall import by itself."""
        self._hidden = {**self._take(lambda name: name not in self._before), **self._hidden}

    def forget_us(self) -> None:
        """Has the modules of nethook imported once more, but for this one, which knows."""
        for modules in (sys.modules, self._hidden):
            for name in [module for module in modules if _is_us(module)]:
                del modules[name]
        (self._hidden if _US in self.names else sys.modules)[__name__] = _THIS

    def module(self, name: str) -> Any:
        """A module of nethook's."""
        with self.shown():
            return import_module(name)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """A block in which `sys.modules` shows nethook's world."""
        self._show_ours()
        try:
            yield
        finally:
            self._show_theirs()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module of nethook's world is; None leaves it to the others."""
        inside = getattr(self._here, "depth", 0) > 0
        if _is_us(name) and (inside or _US not in self.names):
            spec = PathFinder.find_spec(name, [_ROOT] if path is None else path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _OwnLoader(spec.loader, self._builtins)
            return spec
        if path is None and inside and name in self.names:
            return PathFinder.find_spec(name, self.path, target)
        return None

    def _import_ours(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the names that `__import__` has
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`__import__`, for the modules of nethook."""
        if _US not in self.names and (level or _is_us(name)):
            return self._import(name, globals, locals, fromlist or (), level)
        with self.shown():
            return self._import(name, globals, locals, fromlist or (), level)

    # Several threads may import at once: the first changes what is shown, the last changes it back.
    # No lock is held meanwhile, since imports have locks of their own.

    def _show_ours(self) -> None:
        self._here.depth = getattr(self._here, "depth", 0) + 1
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._swap()

    def _show_theirs(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._swap()
        self._here.depth -= 1

    def _swap(self) -> None:
        shown = self._take(lambda _: True)
        sys.modules.update(self._hidden)
        self._hidden = shown

    def _take(self, wanted: Callable[[str], bool]) -> dict[str, ModuleType]:
        """Takes modules with the names that are kept apart out of `sys.modules`."""
        taken = [name for name in list(sys.modules) if name.partition(".")[0] in self.names]
        return {name: sys.modules.pop(name) for name in taken if wanted(name)}


class _OwnLoader(Loader):
    """The loader of a module of nethook's, which gives it an `__import__` of its own."""

    def __init__(self, real: Loader, own: dict[str, Any]) -> None:
        self._real = real
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        module.__dict__["__builtins__"] = self._own
        self._real.exec_module(module)


def _modules_in(folder: str) -> set[str]:
    """The names that may be modules or packages in a folder or an archive."""
    try:
        names = [path.name for path in Path(folder or os.curdir).iterdir()]
    except NotADirectoryError:
        import pkgutil

        return {module.name for module in pkgutil.iter_modules([folder])}
    except (OSError, ValueError):
        return set()
    stems = {name.partition(".")[0] for name in names}
    return {name for name in stems if name.isidentifier()}


def _is_regular(spec: ModuleSpec | None) -> bool:
    """Whether a module was found; a folder without `__init__.py` gives way to others."""
    return spec is not None and spec.loader is not None and spec.origin is not None


def _at_start() -> list[str]:
    """The modules that every Python has imported when a script begins: those up to `site`."""
    imported = list(sys.modules)
    last = "site" if "site" in sys.modules else "__main__"
    return imported[: imported.index(last) + 1]


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one or os.curdir, other or os.curdir)  # noqa: PTH121
    except (OSError, ValueError):
        return False


def _is_us(name: str) -> bool:
    return name == _US or name.startswith(f"{_US}.")


_THIS: Final = sys.modules[__name__]
