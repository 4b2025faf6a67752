"""A folder of CSV or Parquet: read back by other programs, the cells are those of the tables."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow.parquet as pq
import pytest

import nethook
from nethook.exporting.folder import to_csv, to_parquet
from nethook.exporting.tables import tables
from nethook.runs.writing.writer import RunWriter
from tests.runs.made import write_run


@pytest.fixture
def run(tmp_path):
    write_run(tmp_path / "a.db", 5, 2)
    return nethook.open_run(tmp_path / "a.db")


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_numbers_come_back_from_csv_to_the_last_bit(run, tmp_path):
    files = {path.stem: path for path in to_csv(run, tmp_path)}
    assert set(files) == {"series", "scalars", "sites"}  # a table without rows has no file
    assert not (tmp_path / "losses.csv").exists()
    (piece,) = tables(run)["series"]
    rows = rows_of(files["series"])
    assert list(rows[0]) == list(piece)
    for name in ("mean", "m2", "std", "max"):
        np.testing.assert_array_equal([float(row[name]) for row in rows], piece[name])


def test_parquet_has_the_types_of_the_columns(run, tmp_path):
    files = {path.stem: path for path in to_parquet(run, tmp_path)}
    assert set(files) == {"series", "scalars", "sites"}
    (piece,) = tables(run)["series"]
    table = pq.read_table(files["series"])
    assert table.column_names == list(piece)
    assert str(table.schema.field("last_step").type) == "int64"
    np.testing.assert_array_equal(table["mean"].to_numpy(), piece["mean"])
    assert table["address"].to_pylist() == piece["address"]


def test_what_a_spreadsheet_would_run_begins_with_an_apostrophe(tmp_path):
    formula = "=HYPERLINK(0)"
    with RunWriter(tmp_path / "a.db") as writer:
        writer.log(formula, -1.5, 0)
    files = {path.stem: path for path in to_csv(nethook.open_run(tmp_path / "a.db"), tmp_path)}
    (row,) = rows_of(files["scalars"])
    assert row["name"] == f"'{formula}"
    assert row["value"] == "-1.5"  # a number is one, also with a sign


def test_pieces_follow_one_head(tmp_path):
    write_run(tmp_path / "a.db", 1, 70)
    files = {path.stem: path for path in to_csv(nethook.open_run(tmp_path / "a.db"), tmp_path)}
    rows = rows_of(files["series"])
    assert [row["address"] for row in rows] == [f"layer{index}" for index in range(70)]
