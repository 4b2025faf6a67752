"""`nethook merge`."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from nethook.cli.main import app
from nethook.runs.writing.writer import RunWriter


def test_ranks_become_one_file_beside_them(tmp_path: Path) -> None:
    for rank in range(2):
        RunWriter(tmp_path / "a.db", rank=rank, world_size=2).close()
    done = CliRunner().invoke(app, ["merge", str(tmp_path / "a.rank1.db")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a-merged.db").is_file()
    assert Path(done.output.strip()) == tmp_path / "a-merged.db"


def test_one_rank_is_refused_in_a_line(tmp_path: Path) -> None:
    RunWriter(tmp_path / "a.db").close()
    done = CliRunner().invoke(app, ["merge", str(tmp_path / "a.db")])
    assert done.exit_code == 2
    assert "nethook merge: `run` must have several ranks" in done.output
