"""Run files of 0.1 in reports, on the page, exported, and compared."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from nethook.exporting.export import FORMATS
from nethook.page.folder import Folder
from nethook.page.live.links import LiveLinks
from nethook.page.section import Subject
from nethook.page.sections.layers import layers
from nethook.page.sections.loop import loop
from nethook.page.urls import read_place
from tests.cli.command import run
from tests.old_files.written import RUNS, expected, unpacked
from tests.page.shown import figures_of, text_of


@pytest.mark.parametrize("name", RUNS)
def test_a_report(tmp_path: Path, name: str) -> None:
    done = run("report", unpacked(tmp_path, name), "--to", tmp_path / "report.html")
    assert (done.exit_code, done.stderr) == (0, "")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(code in page for code in expected(name)["codes"])


@pytest.mark.parametrize("name", RUNS)
def test_the_page(tmp_path: Path, name: str) -> None:
    unpacked(tmp_path, name)
    folder = Folder(tmp_path)
    (entry,) = folder.entries()
    opened = folder.open(entry)
    assert opened.reading is not None
    links = LiveLinks(entry.id, opened.reading)
    subject = Subject(opened.reading, links, entry.name, opened.tag, live=True)
    place = read_place(f"/run/{entry.id}", "")
    sections = [loop(subject, place), layers(subject, place)]
    assert all(text_of(section) for section in sections)
    figures = [spec for section in sections for spec in figures_of(section).values()]
    assert len(figures) >= 2
    assert all(spec["data"] for spec in figures if spec is not None)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("format_", FORMATS)
def test_an_export(tmp_path: Path, name: str, format_: str) -> None:
    out = tmp_path / "out"
    done = run("export", unpacked(tmp_path, name), "--format", format_, "--to", out)
    assert (done.exit_code, done.stderr) == (0, "")
    files = [Path(line) for line in done.stdout.splitlines()]
    assert files
    assert all(path.stat().st_size for path in files)
    if format_ == "csv" and (told := expected(name).get("series")):
        with (out / "series.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        for key, numbers in told.items():
            address, quantity, phase = key.split()
            counts = [
                float(row["count"])
                for row in rows
                if (row["address"], row["quantity"], row["phase"]) == (address, quantity, phase)
            ]
            assert counts == [count for count, *_ in numbers]


@pytest.mark.parametrize("name", RUNS)
def test_a_diagnosis_on_the_command_line(tmp_path: Path, name: str) -> None:
    done = run("diagnose", unpacked(tmp_path, name))
    assert done.exit_code == (3 if expected(name)["codes"] else 0)
    assert all(code in done.stdout for code in expected(name)["codes"])


def test_two_runs_compared(tmp_path: Path) -> None:
    healthy, dead = unpacked(tmp_path, "healthy"), unpacked(tmp_path, "dead")
    same = run("diff", healthy, healthy)
    assert (same.exit_code, same.stderr) == (0, "")
    assert "They are equal" in same.stdout
    other = run("diff", healthy, dead, "--to", tmp_path / "diff.html")
    assert (other.exit_code, other.stderr) == (1, "")
    assert (tmp_path / "diff.html").exists()
