"""Studies on the page: a figure and a table each."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.page.sections.study import all_studies, studies
from nethook.page.studies import StudyFile, studies_in
from tests.page.shown import figures_of, html_of, text_of
from tests.page.studied import saved


@pytest.fixture
def files(tmp_path: Path) -> list[StudyFile]:
    return studies_in(saved(tmp_path / "a.studies"))


def test_each_has_its_figure_and_its_table(files: list[StudyFile]) -> None:
    pixels, units = all_studies(files)
    assert (pixels.name, units.name) == ("study-0", "study-1")
    assert figures_of(pixels)["study-0"]["data"][0]["type"] == "image"
    assert figures_of(units)["study-1"]["data"][0]["z"].shape == (2, 3)
    assert "saliency of the input: 2 rows of 1 × 8 × 8" in text_of(pixels)
    text = text_of(units)
    assert text.startswith("units effect of zero(): 2 sites × 3 units, 2 rows")
    assert "site left <b>middle</b> right" in text  # as text, not as an element
    assert "&lt;b&gt;middle" in html_of(units)


def test_inputs_are_shown_only_where_they_may_be(files: list[StudyFile]) -> None:
    pixels, units = all_studies(files, pictures=False)
    assert figures_of(pixels) == {"study-0": None}
    assert "drawn with --pictures" in text_of(pixels, live=False)
    assert "row, column" in text_of(pixels)  # its table stays
    assert figures_of(units)["study-1"]


def test_tags_change_with_the_files(files: list[StudyFile]) -> None:
    before = [section.tag for section in all_studies(files)]
    assert before == [section.tag for section in all_studies(files)]
    path = files[0].path
    path.write_text(path.read_text() + "\n")
    after = [section.tag for section in all_studies(studies_in(path.parent))]
    assert [one == two for one, two in zip(before, after, strict=True)] == [False, True]


def test_a_broken_one_does_not_hide_the_others(files: list[StudyFile]) -> None:
    files[0].path.write_text("{}")
    pixels, units = all_studies(studies_in(files[0].path.parent))
    assert "It cannot be read" in text_of(pixels)
    assert figures_of(pixels) == {"study-0": None}
    assert figures_of(units)["study-1"]


def test_how_many_there_are(files: list[StudyFile]) -> None:
    assert "2 results of nethook.interp" in text_of(studies(files))
    assert "1 result of nethook.interp that was saved" in text_of(studies(files[:1]))
    assert "No study was saved" in text_of(studies([]))
    many = [StudyFile(files[0].path, f"{n:03}", (n,)) for n in range(45)]
    assert "The first 40 are shown" in text_of(studies(many))
    assert len(all_studies(many)) == 40
