"""The comparison with golden texts: it passes, it fails with a difference and advice, it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import FOLDER, Golden, replaced


def test_the_same_text_passes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    Golden(folder=tmp_path)("a", "one  \ntwo\n\n")


def test_another_text_fails_with_the_difference_and_says_how_to_take_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception) as failure:
        Golden(folder=tmp_path)("a", "one\nthree")
    text = str(failure.value)
    assert text.startswith("a.txt has another text.")
    assert "--overwrite" in text
    assert text.endswith(" one\n-two\n+three")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "one\ntwo\n"


def test_a_text_without_a_file_fails(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"a\.txt has another text"):
        Golden(folder=tmp_path)("a", "one")


def test_overwrite_writes_the_file_that_then_passes(tmp_path: Path) -> None:
    Golden(overwrite=True, folder=tmp_path)("deep/a", "one  \ntwo")
    assert (tmp_path / "deep" / "a.txt").read_text(encoding="utf-8") == "one\ntwo\n"
    Golden(folder=tmp_path)("deep/a", "one\ntwo")


def test_names_replace_what_differs() -> None:
    assert replaced("took 2.5 s at 12:30", {r"\d+\.\d+": "#", r"\d\d:\d\d": "TIME"}) == (
        "took # s at TIME"
    )


def test_every_golden_text_belongs_to_a_test() -> None:
    source = "".join(
        path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py")
    )
    names = {path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.txt")}
    # `help/run` and `verdict_plain` come from a parameter, so only their beginning is there.
    beginnings = {
        name.partition("/")[0] if "/" in name else name.partition("_")[0] for name in names
    }
    assert not [
        name
        for name in beginnings
        if f'golden("{name}' not in source and f'golden(f"{name}' not in source
    ]
