"""Data frames, when a library for them is installed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import nethook
from nethook.errors import OptionError
from nethook.runs.reading.frames import make_frame
from tests.runs.made import write_run

LIBRARIES = ("pandas", "polars")


class StandIn(dict):
    """A frame as both libraries make one: from a mapping of equally long columns."""

    def __init__(self, columns: dict[str, np.ndarray]) -> None:
        assert len({len(column) for column in columns.values()}) == 1
        super().__init__(columns)


def install(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = ModuleType(name)
    module.DataFrame = type(name, (StandIn,), {})
    monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def neither(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name, None)  # importing it fails


@pytest.mark.usefixtures("neither")
def test_without_a_library_the_message_says_what_to_install() -> None:
    with pytest.raises(ImportError, match=r"pandas or polars, which is not .*: pip install pandas"):
        make_frame({})
    with pytest.raises(ImportError, match="pip install polars"):
        make_frame({}, "polars")


@pytest.mark.usefixtures("neither")
@pytest.mark.parametrize("name", LIBRARIES)
def test_the_one_that_is_there_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, name)
    assert type(make_frame({"a": np.arange(3)})).__name__ == name


@pytest.mark.usefixtures("neither")
def test_the_one_that_is_named_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIBRARIES:
        install(monkeypatch, name)
    assert type(make_frame({"a": np.arange(3)}, "polars")).__name__ == "polars"
    with pytest.raises(OptionError, match="`library` must be pandas or polars; got 'dask'"):
        make_frame({}, "dask")


@pytest.mark.usefixtures("neither")
def test_everything_that_has_columns_has_a_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "a.db", 10)
    install(monkeypatch, "pandas")
    run = nethook.open_run(tmp_path / "a.db")
    series = run.series("layer1").frame()
    assert {"first_step", "last_step", "steps", "seen", "coverage", "mean", "std"} <= set(series)
    whole = run.frame()
    assert len(whole["mean"]) == 3 * 10
    assert set(whole["address"]) == {"layer0", "layer1", "layer2"}
    assert run.scalars["loss"].frame()["value"].tolist() == [1 / (1 + step) for step in range(10)]
    histogram = run.histograms("layer1").frame()
    assert histogram["count"].sum() == 10 * 12


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_real_library(name: str, tmp_path: Path) -> None:
    write_run(tmp_path / "a.db", 10)
    run = nethook.open_run(tmp_path / "a.db")
    assert run.series("layer1").frame(name).shape[0] == 10
    assert run.frame(name).shape[0] == 30
