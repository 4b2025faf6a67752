"""The list of runs: sorted, filtered, with columns, and groups of seeds as bands."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from nethook.page import folder as page_folder
from nethook.page.folder import Folder
from nethook.page.sections.runs import age, columns_of, runs
from nethook.page.summaries import Summaries, Summary
from nethook.page.urls import read_place
from nethook.runs.writing.writer import RunWriter
from tests.page.shown import figures_of, folder, html_of, opened


def section(search: str = "", of: Folder | None = None):
    place, summaries = of or folder(), Summaries()
    for entry in place.entries()[:20]:  # what a busy machine would leave to a thread
        summaries.make(entry)
    return runs(place, summaries, read_place("/", search))


def listed(search: str = "", of: Folder | None = None) -> str:
    return html_of(section(search, of))


def test_every_run_has_a_row_with_its_verdict() -> None:
    shown = listed()
    for name in ("training", "changed", "broken"):
        assert opened(name).entry.id in shown
    assert shown.count("1 error, 1 warning, 1 note") == 2
    assert shown.count('class="spark"') == 2


def test_a_word_filters_names() -> None:
    shown = listed("?find=CHANG")
    assert opened("changed").entry.id in shown
    assert opened("training").entry.id not in shown
    assert "Nothing found" in listed("?find=nowhere")


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


def test_runs_that_are_too_many_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_folder, "MOST_FILES", 3)
    for number in range(5):
        with RunWriter(tmp_path / f"run-{number}.db"):
            pass
    assert f"3 runs in {tmp_path.name} (without the 2 oldest)" in listed(of=Folder(tmp_path))
    monkeypatch.undo()
    assert "5 runs" in listed(of=Folder(tmp_path))
    assert "oldest" not in listed(of=Folder(tmp_path))


def test_a_folder_without_runs_says_what_to_type(tmp_path: Path) -> None:
    assert "nethook run" in listed(of=Folder(tmp_path))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Two rates with three seeds each."""
    place = tmp_path_factory.mktemp("sweep")
    for rate in ("0.1", "0.01"):
        for seed in range(3):
            with RunWriter(place / f"lr{rate}-{seed}.db") as writer:
                command = ["python", "train.py", "--lr", rate, f"--seed={seed}"]
                writer.info(command=command)
                for step in range(20):
                    writer.log("loss", float(rate) + seed / 100 + 1 / (1 + step), step)
    return Folder(place)


def names(shown: str) -> list[str]:
    return re.findall(r'class="address" href="[^"]*" title="([^"]*)"', shown)


def test_settings_that_differ_are_columns_and_can_be_sorted_by(sweep: Folder) -> None:
    shown = listed("?sort=-loss", sweep)
    assert 'data-param="sort" data-value="lr"' in shown
    assert 'aria-sort="descending"' in shown
    assert names(shown)[0] == "lr0.1-2"
    assert names(listed("?sort=loss", sweep))[0] == "lr0.01-0"
    assert len(names(listed("?find=lr>0.05", sweep))) == 3


def test_columns_can_be_chosen(sweep: Folder) -> None:
    assert 'data-param="sort" data-value="seed"' not in listed("?show=lr", sweep)
    assert 'data-param="sort" data-value="seed"' in listed("?show=lr~seed", sweep)


def test_seeds_of_one_configuration_are_a_band(sweep: Folder) -> None:
    grouped = section("?group=1", sweep)
    shown = html_of(grouped)
    assert "lr=0.01" in shown
    assert "lr=0.1" in shown
    (spec,) = figures_of(grouped).values()
    bands = [trace for trace in spec["data"] if trace.get("fill") == "tonexty"]
    assert len(bands) == 2


def test_columns_that_tell_runs_apart_come_first() -> None:
    known = [
        Summary(
            (), "finished", settings={"lr": rate, "model": "mlp"}, metrics={"loss": 1.0, "acc": 2.0}
        )
        for rate in ("1", "2")
    ]
    assert columns_of(known) == (["loss", "lr", "acc"], ["model"])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "just now"), (0, "just now"), (59, "just now"), (61, "1 min ago"),
        (7200, "2 h ago"), (2 * 86400 + 5, "2 d ago"),
    ],
)  # fmt: skip
def test_an_age_is_rough(seconds: float, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    assert age(1_700_000_000.0 - seconds) == text


def test_what_is_older_has_a_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    assert age(1_690_000_000.0) == "2023-07-22"
