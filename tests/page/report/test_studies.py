"""Studies in a report: of their own, and as a chapter of a run's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import nethook
from nethook.errors import OptionError
from nethook.page.report.studies import is_of_studies, studies_beside
from tests.figures.pages import Page
from tests.figures.shared import training
from tests.page.studied import saved


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "mnist.studies")


def page_of(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def test_a_study_has_a_page_of_its_own(folder: Path, tmp_path: Path) -> None:
    made = nethook.figures.report(folder / "units.json", tmp_path / "units.html")
    page = page_of(made)
    assert list(page.figures) == ["figure-study-0"]
    assert "effect of zero()" in page.text
    assert made.stat().st_size < 8_000_000
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv"))
    assert str(policy).startswith("default-src 'none'")


def test_all_of_a_folder_on_one_page(folder: Path, tmp_path: Path) -> None:
    page = page_of(nethook.figures.report(folder, tmp_path / "all.html"))
    assert list(page.figures) == ["figure-study-0", "figure-study-1"]


def test_they_are_a_chapter_of_the_runs_report(folder: Path, tmp_path: Path) -> None:
    run = Path(shutil.copy(training(), tmp_path / "mnist.db"))
    page = page_of(nethook.figures.report(run, tmp_path / "a.html"))
    sections = [a["id"] for tag, a in page.elements if tag == "section" and "id" in a]
    assert sections == ["verdict", "findings", "overview", "layers", "studies", "about"]
    studied = [name for name in page.figures if "study" in name]
    assert studied == ["figure-study-1"]  # not the one in which pictures can be recognized
    page = page_of(nethook.figures.report(run, tmp_path / "b.html", pictures=True))
    studied = [name for name in page.figures if "study" in name]
    assert studied == ["figure-study-0", "figure-study-1"]


def test_what_does_not_fit_is_left_out(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "mnist.db"
    whole = studies_beside(run, 10**7, pictures=True)
    assert whole is not None
    assert (len(whole.sections), whole.note) == (2, "")
    room = max(each.size for each in whole.sections)
    few = studies_beside(run, room, pictures=True)
    assert few is not None
    assert (len(few.sections), few.note[:11]) == (1, "1 of 2 stud")
    assert studies_beside(tmp_path / "other.db", 10**7, pictures=True) is None


def test_what_is_no_study_is_refused(tmp_path: Path) -> None:
    assert is_of_studies(tmp_path)
    assert is_of_studies(Path("a.json"))
    assert not is_of_studies(Path("a.db"))
    for place in (tmp_path, tmp_path / "a.json"):
        with pytest.raises(OptionError, match="a report of studies needs files that `save`"):
            nethook.figures.report(place, tmp_path / "a.html")
