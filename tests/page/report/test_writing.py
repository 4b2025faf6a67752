"""Pages that are there as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.errors import OptionError
from nethook.page.report.writing import write_whole


def test_the_folder_is_made_and_the_text_is_utf_8(tmp_path: Path) -> None:
    target = tmp_path / "new" / "deep" / "page.html"
    assert write_whole(target, "größer → ∞") == target
    assert target.read_bytes() == "größer → ∞".encode()
    assert list(target.parent.iterdir()) == [target]


def test_what_utf_8_has_not_is_spelt_out(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.html", "name \udc80")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == "name \\udc80"


def test_home_is_meant_by_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert write_whole(Path("~/a.html"), "x") == tmp_path / "a.html"
    assert (tmp_path / "a.html").exists()


def test_an_older_page_is_replaced_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("old" * 1000)
    write_whole(tmp_path / "a.html", "new")
    assert (tmp_path / "a.html").read_text() == "new"


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path / "file" / "a.html", tmp_path / "a\0b.html"):
        with pytest.raises(OptionError, match=r"^`to` must be a file that can be written; got "):
            write_whole(target, "x")
