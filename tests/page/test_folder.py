"""The runs of a folder: found, known by ids, and read again when they change."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from nethook.page.folder import Folder, stamp_of, stamps_of
from nethook.page.summaries import spark_line, summary_of
from nethook.runs import names
from nethook.runs.writing.writer import RunWriter
from tests.figures.shared import training
from tests.runs.made import row


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "runs" / "deep").mkdir(parents=True)
    shutil.copy(training(), tmp_path / "runs" / "a.db")
    shutil.copy(training(), tmp_path / "runs" / "deep" / "b.db")
    return tmp_path / "runs"


def test_runs_are_found_and_others_are_not(place: Path, tmp_path: Path) -> None:
    shutil.copy(training(), tmp_path / "outside.db")
    (place / "link.db").symlink_to(tmp_path / "outside.db")
    (place / "inside.db").symlink_to(place / "a.db")
    (place / ".hidden.db").write_bytes(b"")
    (place / "notes.txt").write_text("")
    shutil.copy(training(), place / "a.rank1.db")
    shutil.copy(training(), place / "lost.rank3.db")
    found = {entry.name for entry in Folder(place).entries()}
    assert found == {"a", "deep/b", "inside", "lost.rank3"}


def test_an_id_is_looked_up_and_never_a_path(place: Path) -> None:
    folder = Folder(place)
    ids = {entry.name: entry.id for entry in folder.entries()}
    assert len(set(ids.values())) == 2
    entry = folder.entry(ids["a"])
    assert entry is not None
    assert entry.path == place / "a.db"
    for other in ("a", "a.db", "../runs/a.db", str(place / "a.db"), "", "\0"):
        assert folder.entry(other) is None


def test_a_run_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    writer = RunWriter(path, flush_every=0.01)
    at = writer.add_series("fc", names.OUTPUTS)
    window = writer.window()
    folder = Folder(tmp_path)
    steps = []
    for step in range(3):
        window.rows[at], window.seen[at] = row(np.ones(4)), 1
        window.add_step(step)
        window = writer.submit(window)
        writer.flush(10)
        opened = folder.open(folder.entries()[0])
        assert opened.state == "open"
        assert opened.reading is not None
        steps.append(opened.reading.last_step)
    assert steps == [0, 1, 2]
    writer.close()
    closed = folder.open(folder.entries()[0])
    assert closed.state == "finished"
    assert closed.tag != opened.tag
    assert folder.open(closed.entry) is closed  # nothing has changed since


def test_a_broken_run_says_why(place: Path) -> None:
    (place / "bad.db").write_bytes(b"nothing" * 100)
    folder = Folder(place)
    bad = next(entry for entry in folder.entries() if entry.name == "bad")
    opened = folder.open(bad)
    assert (opened.state, opened.reading) == ("broken", None)
    assert "bad.db" in opened.problem
    assert summary_of(bad).state == "broken"


def test_one_file_is_a_folder_of_one(place: Path) -> None:
    folder = Folder(place / "a.db")
    assert [entry.name for entry in folder.entries()] == ["a"]
    later = Folder(place / "later.db", wait=True)
    assert later.entries() == []
    shutil.copy(training(), place / "later.db")
    assert [entry.id for entry in later.entries()] == [later.id_of(place / "later.db")]


def test_a_summary(place: Path) -> None:
    summary = summary_of(Folder(place).entries()[0])
    assert (summary.state, summary.steps) == ("finished", 120)
    assert (summary.verdict, summary.severity) == ("1 error, 1 warning, 1 note", "error")
    assert summary.loss == "2.362 → 0.9499"
    assert summary.spark.startswith("data:image/svg+xml;base64,")


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [1e-9, 1.0, 1e9], list(range(1000))])
def test_spark_lines_of_anything(values: list[float]) -> None:
    step = np.arange(len(values))
    assert spark_line(step, np.array(values, dtype=float)).startswith("data:image/svg+xml;base64,")


def test_links_that_lead_in_a_circle_and_pipes_are_no_trouble(place: Path) -> None:
    (place / "circle.db").symlink_to(place / "circle.db")
    os.mkfifo(place / "pipe.db")
    folder = Folder(place)
    found = {entry.name: folder.open(entry).state for entry in folder.entries()}
    assert found == {"a": "finished", "deep/b": "finished", "pipe": "broken"}


def test_the_stamps_of_many_runs_are_those_of_each(place: Path) -> None:
    shutil.copy(training(), place / "a.rank1.db")
    shutil.copy(training(), place / "a.rank.odd.db")
    shutil.copy(training(), place / "lost.rank3.db")
    entries = Folder(place).entries()
    stamps = stamps_of(entries)
    assert len(stamps) == len(entries) == 4
    assert stamps == {entry.id: stamp_of(entry.path) for entry in entries}
    (ranked,) = (entry for entry in entries if entry.name == "a")
    assert [part[0] for part in stamps[ranked.id]] == [0, 1]
