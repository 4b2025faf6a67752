"""Facts that come after a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.errors import RunFileError
from nethook.runs.reading.run import open_run
from nethook.runs.writing.late_facts import add_facts
from tests.runs.made import write_run


def test_facts_are_added_to_a_run_that_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    write_run(path)
    with open_run(path) as run:
        before = run.info
    add_facts(path, {"tried": [{"code": "x", "train": [2.0, float("nan")]}]})
    add_facts(path, {"other": 1})
    with open_run(path) as run:
        after = dict(run.info)
    [tried] = after.pop("tried")
    assert tried["train"][0] == 2.0
    assert after.pop("other") == 1
    assert after == before


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    path.write_text("no run at all", encoding="utf-8")
    with pytest.raises(RunFileError):
        add_facts(path, {"tried": []})
    assert path.read_text(encoding="utf-8") == "no run at all"
