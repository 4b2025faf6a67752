"""Snapshots as pictures: feature maps, attention, or plain rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nethook.figures.reading import Reading
from nethook.page.report.links import ReportLinks
from nethook.page.section import Subject
from nethook.page.sections.pictures import all_pictures, kind_of, pictures
from nethook.runs.writing.writer import RunWriter
from tests.page.shown import figures_of, subject, text_of

RANDOM = np.random.default_rng(0)
ATTENTION = np.exp(RANDOM.normal(size=(1, 2, 5, 5)))
ATTENTION = (ATTENTION / ATTENTION.sum(-1, keepdims=True)).astype(np.float32)
MAPS = RANDOM.normal(size=(2, 3, 4, 4)).astype(np.float32)
ROWS = RANDOM.normal(size=(3, 10)).astype(np.float32)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    path: Path = tmp_path_factory.mktemp("pictures") / "a.db"
    with RunWriter(path) as writer:
        for step in (0, 10, 20):
            writer.snapshot("attn", step, ATTENTION)
            writer.snapshot("conv", step, MAPS)
            writer.snapshot("fc", step, ROWS)
    return Subject(Reading(path), ReportLinks({}), "a")


@pytest.mark.parametrize(
    ("values", "kind"), [(ATTENTION, "attention"), (MAPS, "feature maps"), (ROWS, "values")]
)
def test_what_an_output_is_a_picture_of(values: np.ndarray, kind: str) -> None:
    assert kind_of(values) == kind


@pytest.mark.parametrize(
    ("name", "title"), [("attn", "Attention"), ("conv", "Feature maps"), ("fc", "Snapshots")]
)
def test_every_kind_is_drawn(kept: Subject, name: str, title: str) -> None:
    section = pictures(kept, name)
    assert title in text_of(section)
    assert "3 snapshots" in text_of(section)
    assert figures_of(section)["snapshots"]["data"]


def test_many_layers_stand_on_one_page_with_their_names(kept: Subject) -> None:
    sections = all_pictures(kept)
    assert [section.name for section in sections] == ["pictures-0", "pictures-1", "pictures-2"]
    for place, (section, name) in enumerate(zip(sections, ("attn", "conv", "fc"), strict=True)):
        assert f" of {name}" in text_of(section)
        assert figures_of(section)[f"snapshots-{place}"]["data"]


def test_a_layer_without_snapshots_has_no_section() -> None:
    section = pictures(subject(), "fc1")
    assert figures_of(section) == {"snapshots": None}
    assert text_of(section) == ""
