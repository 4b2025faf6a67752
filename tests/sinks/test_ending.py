from __future__ import annotations

import pytest

from nethook.errors import MissingLibraryError
from nethook.figures import reports
from nethook.runs.writing.writer import RunWriter
from nethook.sinks.ending import ending_of


@pytest.fixture
def path(tmp_path):
    with RunWriter(tmp_path / "run.db") as writer:
        writer.log("loss", 1.0, 0)
    return tmp_path / "run.db"


def test_a_run_that_nobody_judged_says_so(path):
    with ending_of(path, report=False) as ending:
        assert ending.verdict.startswith("not judged")
        assert ending.report is None


def test_a_run_that_is_gone_ends_all_the_same(tmp_path):
    with ending_of(tmp_path / "none.db", report=True) as ending:
        assert ending.verdict.startswith("not judged: ")
        assert ending.report is None


def test_without_what_makes_a_report_there_is_none(path, monkeypatch):
    def missing(*_):
        raise MissingLibraryError("no plotly")

    monkeypatch.setattr(reports, "report", missing)
    with ending_of(path, report=True) as ending:
        assert ending.report is None
