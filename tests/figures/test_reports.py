"""The report of a run, by its public name."""

from __future__ import annotations

from pathlib import Path

import nethook
from nethook.page.report.report import write_report
from tests.figures.shared import training


def test_it_is_what_the_page_s_room_writes(tmp_path: Path) -> None:
    public = nethook.figures.report(training(), tmp_path / "a.html")
    assert public == tmp_path / "a.html"
    assert public.read_bytes() == write_report(training(), tmp_path / "b.html").read_bytes()
