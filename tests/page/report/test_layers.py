"""Every layer of a run for a report, in the room there is."""

from __future__ import annotations

from pathlib import Path

from nethook.figures.reading import Reading
from nethook.page.report.layers import layers_within
from nethook.page.report.links import ReportLinks
from nethook.page.section import Subject
from nethook.runs.writing.writer import RunWriter
from tests.figures.made import LAYERS
from tests.page.shown import in_report


def test_with_room_enough_every_layer_has_figures_in_order() -> None:
    layers, note = layers_within(in_report(), 8_000_000)
    names = [layer.html.partition('data-name="')[2].partition('"')[0] for layer in layers]
    assert names == [address for address, *_ in LAYERS]
    assert all(layer.figures for layer in layers)
    assert note == ""


def test_with_little_room_layers_that_a_finding_names_are_drawn_first() -> None:
    for room in (60_000, 30_000):
        layers, note = layers_within(in_report(), room)
        drawn = [layer for layer in layers if layer.figures]
        without = len(LAYERS) - len(drawn)
        assert len(layers) == len(LAYERS)
        assert sum(layer.size for layer in drawn) <= room
        if without:
            assert note.startswith(f"{without} of {len(LAYERS)} layers are without figures")
        if drawn:
            assert any('data-name="block.relu2"' in layer.html for layer in drawn)
    assert layers_within(in_report(), 0)[1].startswith("7 of 7 layers are without figures")


def test_a_run_without_layers_says_so(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db"):
        pass
    empty = Subject(Reading(tmp_path / "a.db"), ReportLinks({}), "a")
    assert layers_within(empty, 1000) == ([], "The run has no layers with recorded outputs.")
