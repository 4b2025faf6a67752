"""A run as tables: every column of a piece has one length, and pieces joined are the run."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nethook
from nethook.exporting.tables import tables
from tests.figures.made import FINDINGS
from tests.figures.shared import training
from tests.runs.made import write_run


@pytest.fixture(scope="module")
def run():
    return nethook.open_run(training())


def joined(pieces):
    """All pieces of a table as lists."""
    columns = {}
    for piece in pieces:
        assert len({len(column) for column in piece.values()}) == 1
        for name, column in piece.items():
            columns.setdefault(name, []).extend(np.asarray(column, dtype=object).tolist())
    return columns


def test_the_series_are_those_of_the_run_where_they_were_measured(run):
    columns = joined(tables(run)["series"])
    keys = list(zip(columns["address"], columns["quantity"], columns["phase"], strict=True))
    for phase in ("train", "eval"):
        series = run.series("fc1", phase=phase)
        mine = [index for index, key in enumerate(keys) if key == ("fc1", "outputs", phase)]
        seen = series.seen > 0
        assert [columns["last_step"][index] for index in mine] == series.last_step[seen].tolist()
        assert [columns["std"][index] for index in mine] == series["std"][seen].tolist()
    assert all(columns["seen"])


def test_scalars_are_one_table(run):
    columns = joined(tables(run)["scalars"])
    for name, scalar in run.scalars.items():
        mine = [index for index, other in enumerate(columns["name"]) if other == name]
        assert [columns["step"][index] for index in mine] == scalar.step.tolist()
        assert [columns["value"][index] for index in mine] == scalar.value.tolist()


def test_nested_data_are_json(run):
    columns = joined(tables(run)["findings"])
    assert columns["code"] == [finding["code"] for finding in FINDINGS]
    assert [json.loads(text) for text in columns["evidence"]] == [
        finding["evidence"] for finding in FINDINGS
    ]
    assert columns["last_step"][2] is None  # the finding has none
    sites = joined(tables(run)["sites"])
    assert [json.loads(text) for text in sites["info"]] == [site.info for site in run.sites]


def test_a_run_without_anything_has_empty_tables(tmp_path):
    write_run(tmp_path / "a.db", 0, 0)
    made = tables(nethook.open_run(tmp_path / "a.db"))
    assert list(made) == [
        "series", "scalars", "loss_curves", "sites", "losses", "events", "findings",
    ]  # fmt: skip
    assert not joined(made["series"])
    assert not any(joined(made["losses"]).values())


def test_many_series_come_in_pieces(tmp_path):
    write_run(tmp_path / "a.db", 2, 70)
    pieces = list(tables(nethook.open_run(tmp_path / "a.db"))["series"])
    assert [len(piece["address"]) for piece in pieces] == [2 * 64, 2 * 6]
