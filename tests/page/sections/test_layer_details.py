"""Every layer of a run for a report, in the room there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.figures.reading import Reading
from nethook.page.sections.layer_details import latest_numbers, layer_facts, layers_within
from nethook.runs.writing.writer import RunWriter
from tests.figures.made import LAYERS
from tests.figures.shared import training


@pytest.fixture(scope="module")
def reading() -> Reading:
    return Reading(training())


def test_with_room_enough_every_layer_has_figures_in_order(reading: Reading) -> None:
    layers, note = layers_within(reading, 8_000_000)
    assert [layer.address for layer in layers] == [address for address, *_ in LAYERS]
    assert all(layer.specs for layer in layers)
    assert note == ""
    (told,) = (layer for layer in layers if layer.findings)
    assert told.address == "block.relu2"


def test_with_little_room_layers_that_a_finding_names_are_drawn_first(reading: Reading) -> None:
    sizes = [layers_within(reading, room) for room in (60_000, 30_000)]
    for layers, note in sizes:
        drawn = [layer.address for layer in layers if layer.specs]
        without = len(LAYERS) - len(drawn)
        assert len(layers) == len(LAYERS)
        if without:
            assert note.startswith(f"{without} of {len(LAYERS)} layers are without figures")
        if drawn:
            assert "block.relu2" in drawn
    assert layers_within(reading, 0)[1].startswith("7 of 7 layers are without figures")


def test_a_run_without_layers_says_so(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db"):
        pass
    assert layers_within(Reading(tmp_path / "a.db"), 1000) == (
        [], "The run has no layers with recorded outputs.",
    )  # fmt: skip


def test_the_latest_numbers_of_a_layer(reading: Reading) -> None:
    text = latest_numbers(reading, "block.relu2")
    assert text.startswith("std ")
    assert " · grad " in text
    assert " · dead " in text
    assert "dead" not in latest_numbers(reading, "fc1")
    assert latest_numbers(reading, "none") == ""


def test_facts_name_parameters_and_the_line_of_the_source(reading: Reading) -> None:
    text = str(layer_facts(reading, "fc1"))
    for word in ("weight", "bias", "float32", "cpu", "net.py:12"):
        assert word in text
    assert layer_facts(reading, "none") == []
