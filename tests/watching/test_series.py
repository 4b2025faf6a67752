"""Series and their rows: laid out once, folded into, closed as windows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import INDEX
from nethook.stats.native import binding
from nethook.watching.series import Catalogue
from tests.watching.fakes import Writer


@pytest.fixture
def writer(tmp_path):
    writer = RunWriter(tmp_path / "run.db")
    yield writer
    writer.close()


def test_a_series_keeps_its_row_and_beyond_the_capacity_there_is_none():
    catalogue = Catalogue(Writer(), 2)
    assert [catalogue.row("a", "outputs"), catalogue.row("b", "outputs")] == [0, 1]
    assert catalogue.row("c", "outputs") is None
    assert catalogue.row("a", "outputs") == 0
    assert len(catalogue.keys) == 2


def test_what_is_known_better_before_the_file_has_it_takes_its_place():
    writer = Writer()
    catalogue = Catalogue(writer, 4)
    row = catalogue.row("a", "outputs", {"path": "x"})
    catalogue.row("a", "outputs", {"path": "y"})
    assert catalogue.keys[row][2] == {"path": "y"}
    catalogue.identify(np.array([row]), {})
    catalogue.row("a", "outputs", {"path": "z"})
    assert catalogue.keys[row][2] == {"path": "y"}
    catalogue.identify(np.array([row]), {})
    assert writer.added == [("a", "outputs", 0)]  # once


def by_series(catalogue, window, row):
    """Number of a series in the file, its row in the record, and the steps that it was seen in."""
    series = catalogue.ids[row]
    rows, seen = window.in_order()
    return series, rows[series], seen[series]


@pytest.mark.parametrize("native", [True, False])
def test_a_window_is_the_sheet_and_another_one_is_open(writer, native, monkeypatch):
    if not native:
        monkeypatch.setattr(binding, "functions", None)
    catalogue = Catalogue(writer, 8)
    rows = catalogue.new_rows()
    x = torch.tensor([[1.0, 0.0], [3.0, 0.0]])
    catalogue.row("other", "outputs")  # nothing is measured there
    row = catalogue.row("fc", "outputs")
    rows.slot(row, unit_dim=1).fold(x)
    rows.step_ended()
    matrix = rows.matrix
    window = catalogue.close(rows, "eval")
    assert window.rows is matrix  # nothing was copied
    assert (window.phase, window.closed) == ("eval", True)
    series, numbers, seen = by_series(catalogue, window, row)
    assert series == 0
    assert catalogue.ids[0] == -1
    assert numbers[INDEX["mean"]] == x.double().mean()
    assert seen == 1
    assert window.histograms[row].sum() == 4
    assert window.bits_of(series).tolist() == [1, 0]
    assert not rows.matrix[row, INDEX["count"]]
    assert not rows.seen.any()
    assert not rows.slots[row].bits.any()
    # What comes next goes into the other sheet, whoever folds it.
    rows.slots[row].fold(x + 1)
    rows.step_ended()
    assert rows.matrix[row, INDEX["count"]] == 4
    assert rows.seen[row] == 1
    assert window.rows[row, INDEX["count"]] == 4
    assert window.rows[row, INDEX["mean"]] == x.double().mean()


def test_two_closed_sheets_merge_into_one_window(writer):
    catalogue = Catalogue(writer, 8)
    rows = catalogue.new_rows()
    slot = rows.slot(catalogue.row("fc", "outputs"), unit_dim=0)
    numbers = torch.randn(2, 5, dtype=torch.float64)
    numbers[0, 1] = numbers[1, 1] = numbers[1, 2] = 0
    windows = []
    for step, half in enumerate(numbers):
        slot.fold(half)
        rows.step_ended()
        rows.sheet.add_step(step)
        windows.append(catalogue.close(rows, "eval"))
    window, other = windows
    window.merge(other)
    row = window.rows[0]
    assert row[INDEX["count"]] == 10
    assert row[INDEX["mean"]] == pytest.approx(numbers.mean().item())
    assert window.seen[0] == 2
    assert window.histograms[0].sum() == 10
    assert window.bits_of(catalogue.ids[0]).tolist() == [1, 0, 1, 1, 1]
    assert (window.first_step, window.last_step, window.steps) == (0, 1, 2)


def test_a_description_leaves_the_sheet_open_and_its_numbers_in_it(writer):
    catalogue = Catalogue(writer, 8)
    rows = catalogue.new_rows()
    slot = rows.slot(catalogue.row("fc", "outputs"), unit_dim=0)
    slot.fold(torch.ones(3))
    sheet = catalogue.describe(rows)
    assert sheet is rows.sheet
    assert not sheet.closed
    assert sheet.in_order()[0][catalogue.ids[0], INDEX["count"]] == 3
    assert sheet.bits_of(catalogue.ids[0]).tolist() == [1, 1, 1]
    assert slot.bits.tolist() == [1, 1, 1]
    slot.fold(torch.zeros(3))
    window = catalogue.close(rows, "train")
    assert window.rows[0, INDEX["count"]] == 6
    assert window.rows[0, INDEX["active"]] == 3
    assert window.bits_of(catalogue.ids[0]).tolist() == [1, 1, 1]


def test_series_of_an_earlier_session_keep_their_numbers(tmp_path):
    path = tmp_path / "run.db"
    with RunWriter(path) as writer:
        for name in ("a", "b", "c"):
            writer.add_series(name, "outputs")
        window = writer.window()
        window.rows[:, INDEX["tensors"]] = 1
        window.add_step(0)
        writer.submit(window)
    with RunWriter(path, resume=True) as writer:
        catalogue = Catalogue(writer, 8)
        rows = catalogue.new_rows()
        for name in ("d", "c", "a", "b"):
            rows.slot(catalogue.row(name, "outputs")).fold(torch.full((2,), float(ord(name))))
        rows.step_ended()
        window = catalogue.close(rows, "train")
        assert catalogue.ids[:4].tolist() == [3, 2, 0, 1]
        assert window.runs == [(slice(0, 1), slice(3, 4)), (slice(1, 2), slice(2, 3)),
                               (slice(2, 4), slice(0, 2))]  # fmt: skip
        means = window.in_order()[0][:, INDEX["mean"]]
        assert means.tolist() == [float(ord(name)) for name in "abcd"]


def test_steps_in_which_a_series_was_measured_are_counted_once_each():
    catalogue = Catalogue(Writer(), 4)
    rows = catalogue.new_rows()
    for name in ("a", "b"):
        rows.slot(catalogue.row(name, "outputs"))
    for folds in ((2, 1), (0, 1), (3, 0)):
        for row, times in enumerate(folds):
            for _ in range(times):
                rows.slots[row].fold(torch.ones(2))
        rows.step_ended()
    assert rows.seen[:2].tolist() == [2, 2]
    rows.clear()
    assert not rows.seen.any()
