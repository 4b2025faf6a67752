"""The result type: numbers by hand, undefined ones refused, tables, figures, files."""

import json
import math

import pytest
import torch

from nethook.errors import OptionError, ResultError
from nethook.interp import Sweep
from nethook.types import Sweep as PublicSweep


def result(**given):
    values = torch.tensor([[[1.0, 3.0], [2.0, math.nan]], [[1.0, 2.0], [5.0, 6.0]]])
    options = {
        "sites": ("a", "b"), "cells": ("0", "1"), "over": "positions", "values": values,
        "base": torch.tensor([1.0, 2.0]), "source": torch.tensor([5.0, 6.0]), "floor": 1e-6,
        "rows": 2, "runs": 3, "change": "take(source)",
    }  # fmt: skip
    return Sweep(**(options | given))


def test_effects_and_what_was_recovered():
    assert PublicSweep is Sweep
    one = result()
    assert one.effect[:, 0].tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert one.recovered[1, 1].tolist() == [1.0, 1.0]
    assert one.mean.tolist() == [[0.5, 1.0], [0.0, 4.0]]
    low, high = one.interval()
    assert low[0, 0] == pytest.approx(0.5 - 12.7062 * 0.5, abs=1e-4)
    assert low[1, 1] == high[1, 1] == 4.0
    assert low[0, 1].isnan()


def test_recovered_where_it_is_undefined():
    with pytest.raises(ResultError, match=r"same metric in 1 of 2 rows \(0\)"):
        _ = result(source=torch.tensor([1.0, 6.0])).recovered
    with pytest.raises(ResultError, match=r"needs a source run to compare with; the change was ze"):
        _ = result(source=None, change="zero()").recovered


def test_the_strongest_come_first():
    top = result().top()
    assert [(one.site, one.cell, one.mean) for one in top] == [
        ("b", "1", 4.0), ("a", "1", 1.0), ("a", "0", 0.5), ("b", "0", 0.0)
    ]  # fmt: skip
    assert len(result().top(2)) == 2
    gaps = result(values=torch.full((2, 2, 2), math.nan))
    assert gaps.top() == []


def test_the_table(golden):
    wide = result(
        values=torch.arange(56.0).reshape(2, 14, 2), cells=tuple(map(str, range(14))), over="units",
        whole="'b' has hooks of others", notes=("a note",), estimated=True, source=None,
    )  # fmt: skip
    small = result(
        values=torch.tensor([[[1.0, 2.0], [2.0, math.nan]], [[1 + 1e-8, 2.0], [math.nan] * 2]])
    )
    whole = result(values=torch.ones(2, 1, 2), cells=("",), over="")
    golden("sweep", "\n\n".join(map(repr, (result(), small, wide, whole))))
    assert "<table>" in result()._repr_html_()


def test_figures():
    colours = result().figure(tokens=["the", "cat"]).to_dict()
    assert colours["data"][0]["type"] == "heatmap"
    assert list(colours["layout"]["xaxis"]["ticktext"]) == ["the", "cat"]
    bars = result(values=torch.rand(2, 1, 2), cells=("",), over="").figure(theme="dark").to_dict()
    assert bars["data"][0]["type"] == "bar"
    assert len(bars["data"][0]["error_x"]["array"]) == 2
    pixels = result(
        values=torch.rand(2, 6, 2), cells=tuple(map(str, range(6))), over="pixels", grid=(2, 3)
    )
    assert pixels.figure(row=0).to_dict()["data"][0]["type"] == "heatmap"
    with pytest.raises(OptionError, match="`tokens` must have a text for each of the 2 cells"):
        result().figure(tokens=["a"])


def test_files(tmp_path):
    one = result(grid=(1, 2), notes=("x",), whole="why")
    one.save(tmp_path / "r.json")
    two = Sweep.load(tmp_path / "r.json")
    assert torch.equal(two.values.nan_to_num(), one.values.nan_to_num())
    assert repr(two) == repr(one)
    assert two.grid == (1, 2)
    result(source=None).save(tmp_path / "s.json")
    assert Sweep.load(tmp_path / "s.json").source is None
    text = json.loads((tmp_path / "r.json").read_text())
    for broken in ({"sites": "ab"}, {"rows": "2"}, {"grid": [1]}, {"sites": ["a"]}, {"more": 1}):
        (tmp_path / "r.json").write_text(json.dumps(text | broken))
        with pytest.raises(ResultError, match=r"r.json is not a sweep"):
            Sweep.load(tmp_path / "r.json")


def test_shapes_and_options():
    with pytest.raises(ResultError, match=r"\(sites, cells, rows\), \(2, 2, 2\); got \(1, 2, 2\)"):
        result(values=torch.ones(1, 2, 2))
    with pytest.raises(OptionError, match="`confidence` must lie between 0 and 1; got 2"):
        result().interval(2)


def test_names_of_cells_stay_with_the_result(tmp_path):
    named = result().named(["the", "cat", "sat"])
    assert named.cells == ("the", "cat")
    assert named.top(1)[0].cell == "cat"
    named.save(tmp_path / "a.json")
    assert Sweep.load(tmp_path / "a.json").cells == ("the", "cat")
    for wrong in (["the"], "the"):
        with pytest.raises(OptionError, match="`cells` must have a text for each of the 2 cells"):
            result().named(wrong)
