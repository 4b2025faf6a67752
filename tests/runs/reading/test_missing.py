"""What is said of a run that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

import nethook
from nethook.errors import NoSuchRunError
from nethook.runs.writing.writer import RunWriter


def test_a_name_like_it_is_offered(tmp_path: Path) -> None:
    RunWriter(tmp_path / "mnist.db").close()
    with pytest.raises(NoSuchRunError, match=r"Did you mean '.*mnist\.db'\?"):
        nethook.open_run(tmp_path / "mnsit.db")
    with pytest.raises(NoSuchRunError, match=r"there is no run '.*none/a\.db'\.$"):
        nethook.open_run(tmp_path / "none" / "a.db")


def test_a_link_in_the_place_of_a_rank(tmp_path: Path) -> None:
    RunWriter(tmp_path / "a.db", world_size=2).close()
    (tmp_path / "a.rank1.db").symlink_to(tmp_path / "a.db")
    with nethook.open_run(tmp_path / "a.db") as run:
        assert "links that lead elsewhere are not followed" in run.ranks[1].problem
