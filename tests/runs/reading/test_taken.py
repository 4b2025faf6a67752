"""Names of runs: ranks of one launch share one, an earlier launch keeps its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.runs.paths import first_free
from nethook.runs.reading.taken import facts_of, is_taken
from nethook.runs.writing.writer import RunWriter


def test_a_rank_joins_the_run_of_those_that_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETHOOK_RUN_ID", "job-1")
    path = tmp_path / "train-job-1.db"
    writer = RunWriter(path, rank=0, world_size=2)
    try:
        assert is_taken(path, 0)
        assert not is_taken(path, 1)
        assert facts_of(path, "launch", "world_size") == {"launch": "job-1", "world_size": 2}
    finally:
        writer.close()


def test_an_earlier_launch_with_the_same_identity_keeps_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETHOOK_RUN_ID", "job-1")
    path = tmp_path / "train-job-1.db"
    RunWriter(path, rank=0, world_size=2).close()  # its second rank never wrote
    assert is_taken(path, 1)
    assert first_free(path, 1, is_taken) == tmp_path / "train-job-1-2.db"
    monkeypatch.delenv("NETHOOK_RUN_ID")
    assert not is_taken(path, 1)  # a time names no other launch


def test_what_is_only_being_made_or_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETHOOK_RUN_ID", "job-1")
    (tmp_path / "a.db").touch()
    assert not is_taken(tmp_path / "a.db", 1)
    (tmp_path / "b.db").write_text("somebody's")
    assert is_taken(tmp_path / "b.db", 1)
