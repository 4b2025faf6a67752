"""A module is waited for without anybody noticing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nethook.hooks.imports import when_imported

NAME = "module_that_is_waited_for"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    meta_path = list(sys.meta_path)
    yield tmp_path
    sys.modules.pop(NAME, None)
    sys.meta_path[:] = meta_path


def test_it_acts_when_the_module_is_whole_and_then_is_gone(folder: Path) -> None:
    (folder / f"{NAME}.py").write_text("LOADER = __loader__, __spec__.loader\nDONE = 1\n")
    before = list(sys.meta_path)
    seen: list[bool] = []
    when_imported(NAME, lambda: seen.append(hasattr(sys.modules[NAME], "DONE")))
    assert importlib.util.find_spec("json") is not None
    assert seen == []
    module = importlib.import_module(NAME)
    assert seen == [True]
    assert sys.meta_path == before
    real = type(importlib.util.find_spec("json").loader)  # type: ignore[union-attr]
    for loader in (*module.LOADER, module.__loader__, module.__spec__.loader):
        assert type(loader) is real


def test_a_module_that_is_there_is_not_waited_for() -> None:
    seen: list[int] = []
    before = list(sys.meta_path)
    when_imported("json", lambda: seen.append(1))
    assert seen == [1]
    assert sys.meta_path == before


def test_an_import_that_fails_fails_as_ever_and_may_succeed_later(folder: Path) -> None:
    file = folder / f"{NAME}.py"
    file.write_text("raise ImportError('not today')\n")
    seen: list[int] = []
    when_imported(NAME, lambda: seen.append(1))
    with pytest.raises(ImportError, match="not today"):
        importlib.import_module(NAME)
    assert seen == []
    file.write_text("THERE = True  # of another size, so that no stale cache is taken\n")
    importlib.invalidate_caches()
    assert importlib.import_module(NAME).THERE
    assert seen == [1]


def test_a_module_that_does_not_exist_is_missing_as_ever(folder: Path) -> None:
    when_imported(NAME, lambda: None)
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{NAME}'"):
        importlib.import_module(NAME)


def test_several_wait_for_one(folder: Path) -> None:
    (folder / f"{NAME}.py").write_text("")
    seen: list[int] = []
    when_imported(NAME, lambda: seen.append(1))
    when_imported(NAME, lambda: seen.append(2))
    importlib.import_module(NAME)
    assert sorted(seen) == [1, 2]


def test_it_may_be_waited_no_longer(folder: Path) -> None:
    (folder / f"{NAME}.py").write_text("")
    before = list(sys.meta_path)
    seen: list[int] = []
    waiting = when_imported(NAME, lambda: seen.append(1))
    assert sys.meta_path[1:] == before  # it is asked first
    waiting.remove()
    waiting.remove()
    assert sys.meta_path == before
    importlib.import_module(NAME)
    assert seen == []


def test_other_modules_are_not_what_is_waited_for(folder: Path) -> None:
    (folder / f"{NAME}.py").write_text("")
    other = f"another_{NAME}"
    (folder / f"{other}.py").write_text("LOADER = type(__spec__.loader).__name__")
    seen: list[int] = []
    when_imported(NAME, lambda: seen.append(1))
    try:
        assert importlib.import_module(other).LOADER == "SourceFileLoader"
    finally:
        sys.modules.pop(other, None)
    assert seen == []
    importlib.import_module(NAME)
    assert seen == [1]


def test_a_module_that_is_half_imported_is_not_there_yet(folder: Path) -> None:
    (folder / f"{NAME}.py").write_text(
        "from nethook.hooks.imports import when_imported\n"
        "seen = []\n"
        "when_imported(__name__, lambda: seen.append(1))\n"
        "during = list(seen)\n"
    )
    assert importlib.import_module(NAME).during == []


class Special(ModuleType):
    """A module as a loader may make it itself."""


class Makes(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Special(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.DONE = 1  # type: ignore[attr-defined]


class Legacy:
    """A loader of the old kind, which has no `exec_module`."""

    def load_module(self, name: str) -> ModuleType:
        return sys.modules.setdefault(name, Special(name))


@pytest.mark.parametrize(("loader", "acts"), [(Makes(), 1), (Legacy(), 0), (None, 0)])
@pytest.mark.filterwarnings("ignore::ImportWarning", "ignore::DeprecationWarning")
def test_loaders_of_other_kinds_load_as_ever(folder: Path, loader: Any, acts: int) -> None:
    class Finder(MetaPathFinder):
        def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
            return ModuleSpec(name, loader, is_package=loader is None) if name == NAME else None

    sys.meta_path.append(Finder())
    seen: list[int] = []
    when_imported(NAME, lambda: seen.append(1))
    found = importlib.import_module(NAME)
    assert type(found) is (ModuleType if loader is None else Special)
    assert len(seen) == acts


def test_the_modules_own_code_runs_inside_the_block_that_is_asked_for(folder: Path) -> None:
    (folder / f"{NAME}.py").write_text("DONE = 1\n")
    log: list[str] = []

    @contextmanager
    def around() -> Iterator[None]:
        log.append(f"before: {hasattr(sys.modules[NAME], 'DONE')}")
        yield
        log.append(f"after: {hasattr(sys.modules[NAME], 'DONE')}")

    when_imported(NAME, lambda: log.append("acts"), around=around)
    importlib.import_module(NAME)
    assert log == ["before: False", "after: True", "acts"]
