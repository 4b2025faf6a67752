"""Series and their rows: laid out once, folded into, moved into windows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import INDEX
from nethook.stats.native import binding
from nethook.watching.series import Catalogue, Sheet
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


def filled(sheet: Sheet, window, **options):
    window = sheet.fill(window, **options)
    window.steps = max(window.steps, 1)
    return window


@pytest.mark.parametrize("native", [True, False])
def test_a_window_gets_the_numbers_and_the_sheet_is_empty_again(writer, native, monkeypatch):
    if not native:
        monkeypatch.setattr(binding, "functions", None)
    catalogue = Catalogue(writer, 8)
    sheet = Sheet(catalogue)
    x = torch.tensor([[1.0, 0.0], [3.0, 0.0]])
    row = catalogue.row("fc", "outputs")
    catalogue.row("other", "outputs")  # nothing is measured there
    sheet.slot(row, unit_dim=1).fold(x)
    sheet.step_ended()
    window = filled(sheet, writer.window("train"))
    [series] = [catalogue.ids[row]]
    assert window.rows[series, INDEX["mean"]] == x.double().mean()
    assert window.seen[series] == 1
    assert window.histograms[series].sum() == 4
    assert window.bits_of(series).tolist() == [1, 0]
    assert catalogue.ids[1] == -1
    assert not sheet.rows.matrix[row, INDEX["count"]]
    assert not sheet.seen.any()
    assert not sheet.rows.slots[row].bits.any()


def test_a_second_fill_merges_into_the_same_window(writer):
    catalogue = Catalogue(writer, 8)
    sheet = Sheet(catalogue)
    slot = sheet.slot(catalogue.row("fc", "outputs"))
    numbers = torch.randn(2, 5, dtype=torch.float64)
    window = writer.window("train")
    for half in numbers:
        slot.fold(half)
        sheet.step_ended()
        window = filled(sheet, window)
    row = window.rows[catalogue.ids[0]]
    assert row[INDEX["count"]] == 10
    assert row[INDEX["mean"]] == pytest.approx(numbers.mean().item())
    assert window.seen[catalogue.ids[0]] == 2


def test_a_copy_leaves_the_sheet_as_it_is(writer):
    catalogue = Catalogue(writer, 8)
    sheet = Sheet(catalogue)
    slot = sheet.slot(catalogue.row("fc", "outputs"))
    slot.fold(torch.ones(3))
    window = sheet.fill(writer.window("train"), keep=True)
    assert window.rows[catalogue.ids[0], INDEX["count"]] == 3
    assert sheet.rows.matrix[0, INDEX["count"]] == 3


def test_steps_in_which_a_series_was_measured_are_counted_once_each():
    sheet = Sheet(Catalogue(Writer(), 4))
    for name in ("a", "b"):
        sheet.slot(sheet.catalogue.row(name, "outputs"))
    for folds in ((2, 1), (0, 1), (3, 0)):
        for row, times in enumerate(folds):
            for _ in range(times):
                sheet.rows.slots[row].fold(torch.ones(2))
        sheet.step_ended()
    assert sheet.seen[:2].tolist() == [2, 2]
    sheet.clear()
    assert not sheet.seen.any()
