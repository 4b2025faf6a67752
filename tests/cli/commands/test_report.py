"""`nethook report`: where the file goes, and what is printed."""

from __future__ import annotations

import shutil

from tests.cli.command import run
from tests.figures.shared import training
from tests.page.studied import saved


def test_a_report_is_written_beside_the_run_and_named(tmp_path):
    path = shutil.copy(training(), tmp_path / "mnist.db")
    done = run("report", path)
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path / 'mnist.html'}\n")
    assert (tmp_path / "mnist.html").stat().st_size > 4_000_000
    done = run("report", path, "-o", tmp_path / "other.html")
    assert done.stdout == f"{tmp_path / 'other.html'}\n"


def test_a_report_is_opened_where_asked(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run("report", training(), "-o", tmp_path / "a.html", "--open")
    assert opened == [(tmp_path / "a.html").as_uri()]


def test_snapshots_are_shown_where_asked(tmp_path):
    run("report", training(), "--to", tmp_path / "a.html")
    run("report", training(), "--to", tmp_path / "b.html", "--pictures")
    pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("a.html", "b.html")]
    assert ['id="pictures"' in page for page in pages] == [False, True]


def test_saved_studies_are_reported_too(tmp_path):
    folder = saved(tmp_path / "mnist.studies")
    done = run("report", folder / "units.json")
    assert (done.exit_code, done.stdout) == (0, f"{folder / 'units.html'}\n")
    done = run("report", folder)  # mnist.html is that of the run
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path / 'mnist.studies.html'}\n")
    done = run("report", tmp_path / "nothing.json")
    assert done.exit_code == 2
    assert "a report of studies needs files" in done.stderr
