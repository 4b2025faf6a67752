"""The report of a run, by its public name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import nethook
from nethook.errors import MissingLibraryError
from nethook.page.report.report import write_report
from tests.figures.shared import training


def test_it_is_what_the_page_s_room_writes(tmp_path: Path) -> None:
    public = nethook.figures.report(training(), tmp_path / "a.html")
    assert public == tmp_path / "a.html"
    assert public.read_bytes() == write_report(training(), tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize("library", ["jinja2", "plotly.offline"])
def test_what_is_missing_is_named_with_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    for name in [name for name in sys.modules if name.startswith("nethook.page.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingLibraryError, match=rf"{library[:6]}.*pip install 'nethook\[ui\]'"):
        nethook.figures.report(training(), tmp_path / "a.html")
    assert list(tmp_path.iterdir()) == []
