"""Two runs compared, as a page."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nethook.errors import MissingLibraryError
from nethook.figures.difference import Difference
from nethook.figures.reports import difference_page
from tests.figures.pages import Page
from tests.figures.shared import changed, training


@pytest.fixture(scope="module")
def other() -> Difference:
    return Difference(training(), changed())


def test_the_page_is_one_file_with_figures(other: Difference, tmp_path: Path) -> None:
    path = difference_page(other, tmp_path / "new" / "d.html")
    page = Page(path.read_text(encoding="utf-8"))
    assert other.headline() in page.text
    assert len(page.figures) >= 3


def test_without_plotly_it_says_what_to_install(
    other: Difference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'nethook\[ui\]'"):
        difference_page(other, tmp_path / "d.html")
    assert list(tmp_path.iterdir()) == []
