"""The list of layers."""

from __future__ import annotations

from pathlib import Path

from nethook.figures.reading import Reading
from nethook.page.report.links import ReportLinks
from nethook.page.section import Subject
from nethook.page.sections.layerlist import layerlist
from nethook.runs.writing.writer import RunWriter
from tests.figures.made import LAYERS
from tests.page.shown import html_of, subject, text_of


def test_the_list_has_every_layer_in_order() -> None:
    shown = html_of(layerlist(subject()))
    places = [shown.index(f">{address}</a>") for address, *_ in LAYERS]
    assert places == sorted(places)
    assert "dead-units" in shown


def test_a_number_that_says_that_a_layer_is_mostly_dead_is_marked() -> None:
    shown = html_of(layerlist(subject()))
    assert shown.count('<b class="marked">dead ') == 1


def test_a_run_without_layers_says_so(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db"):
        pass
    empty = Subject(Reading(tmp_path / "a.db"), ReportLinks({}), "a")
    assert "No layer has recorded outputs yet" in text_of(layerlist(empty))
