"""Saved studies: which are found, and what is said of one that is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from nethook.page.studies import folder_beside, read_study, studies_in
from tests.page.studied import saved


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "mnist.studies")


def test_where_they_are() -> None:
    assert folder_beside(Path("runs/mnist.db")) == Path("runs/mnist.studies")
    assert folder_beside(Path("runs/mnist.rank1.db")) == Path("runs/mnist.studies")


def test_those_of_a_folder_and_one_alone(folder: Path) -> None:
    assert [file.name for file in studies_in(folder)] == ["pixels", "units"]
    assert [file.name for file in studies_in(folder / "units.json")] == ["units"]
    assert studies_in(folder / "units.safetensors") == []
    assert studies_in(folder / "nothing") == []
    (folder / "notes.json").write_text("{}")  # nothing lies beside it
    (folder / "pixels.safetensors").unlink()
    assert [file.name for file in studies_in(folder)] == ["units"]


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    outside = saved(tmp_path / "outside")
    for ending in ("json", "safetensors"):
        (folder / f"linked.{ending}").symlink_to(outside / f"units.{ending}")
    assert "linked" not in [file.name for file in studies_in(folder)]
    (folder / "units.safetensors").unlink()
    (folder / "units.safetensors").symlink_to(outside / "units.safetensors")
    assert [file.name for file in studies_in(folder)] == ["pixels"]
    (tmp_path / "all.studies").symlink_to(outside)
    assert studies_in(tmp_path / "all.studies") == []


def test_what_is_read(folder: Path) -> None:
    pixels, units = (read_study(file) for file in studies_in(folder))
    assert "saliency of the input" in pixels.title
    assert pixels.has_data
    assert not units.has_data
    for study in (pixels, units):
        assert study.table is not None
        assert study.figure is not None
        assert "width" not in study.figure["layout"]
        assert study.problem == ""


def test_a_study_that_changes_is_read_again(folder: Path) -> None:
    (before,) = studies_in(folder / "units.json")
    assert read_study(before) is read_study(before)
    path = folder / "units.safetensors"
    tensors = load_file(path)
    tensors["values"][:] = 7.0
    save_file(tensors, path)
    (after,) = studies_in(folder / "units.json")
    assert after.stamp != before.stamp
    shown = read_study(after).figure
    assert shown is not None
    assert shown["data"][0]["z"].min() > 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read"),
        (json.dumps({"nethook_sweep": 1}), "must have exactly the fields"),
        (json.dumps({"nethook_tape": 1}), "must be a file that `save` of a study has written"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_what_is_broken_is_said(folder: Path, text: str, said: str) -> None:
    (folder / "units.json").write_text(text)
    (file,) = studies_in(folder / "units.json")
    study = read_study(file)
    assert said in study.problem
    assert (study.table, study.figure) == (None, None)


def test_large_ones_are_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not by the module's name: other tests may have imported it again.
    monkeypatch.setitem(read_study.__wrapped__.__globals__, "_LARGEST", 100)
    read_study.cache_clear()
    assert "larger than 100 bytes" in read_study(studies_in(folder)[0]).problem
    read_study.cache_clear()
