"""A module is waited for without anybody noticing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nethook.hooks.importing import when_imported

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
