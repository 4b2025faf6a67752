"""`train.py:42` in parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.exporting.ci.places import Place, place_of, places_of
from tests.exporting.ci.made import findings


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("train.py:42", Place("train.py", 42)),
        ("a:b/train.py:1", Place("a:b/train.py", 1)),
        ("train.py", None),
        (":42", None),
        ("train.py:0", None),
        ("train.py:-3", None),
        ("train.py:²", None),
        ("", None),
    ],
)
def test_a_file_and_a_number(text: str, place: Place | None) -> None:
    assert place_of(text) == place


def test_uris() -> None:
    assert Place("my scripts/train.py", 1).uri == "my%20scripts/train.py"
    assert Place("/home/me/a b.py", 1).uri == "file:///home/me/a%20b.py"


def test_files_are_relative_to_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = findings(tmp_path)[0]
    assert places_of(first) == [Place(str(tmp_path / "train, it.py"), 42)]
    monkeypatch.chdir(tmp_path)
    assert places_of(first) == [Place("train, it.py", 42)]
