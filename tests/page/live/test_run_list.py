"""The list of runs."""

from __future__ import annotations

from pathlib import Path

from nethook.page.folder import Folder
from nethook.page.live.run_list import listing
from nethook.page.summaries import Summaries
from nethook.page.urls import read_place
from nethook.runs.writing.writer import RunWriter
from tests.page.shown import folder, opened, text_of


def listed(search: str = "", of: Folder | None = None) -> str:
    return text_of(listing(of or folder(), Summaries(), read_place("/", search)))


def test_every_run_has_a_row_with_its_verdict() -> None:
    shown = listed()
    for name in ("training", "changed", "broken"):
        assert opened(name).entry.id in shown
    assert shown.count("1 error, 1 warning, 1 note") == 2


def test_a_word_filters_names() -> None:
    shown = listed("?find=CHANG")
    assert opened("changed").entry.id in shown
    assert opened("training").entry.id not in shown


def test_picked_runs_can_be_compared() -> None:
    ids = f"{opened('training').entry.id}~{opened('changed').entry.id}"
    assert "/compare?runs=" in listed(f"?pick={ids}")


def test_many_runs_are_shown_a_page_at_a_time(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db"):
        pass
    content = (tmp_path / "a.db").read_bytes()
    for number in range(204):
        (tmp_path / f"run-{number}.db").write_bytes(content)
    first = listed(of=Folder(tmp_path))
    assert "1 to 200 of 205" in first
    assert "older" in first
    assert "newer" not in first
    second = listed("?from=200", of=Folder(tmp_path))
    assert "201 to 205 of 205" in second
    assert "newer" in second


def test_a_folder_without_runs_says_what_to_type(tmp_path: Path) -> None:
    assert "nethook run" in listed(of=Folder(tmp_path))
