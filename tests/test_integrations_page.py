"""The tables of docs/integrations.md: made from rows, and of the versions that are pinned."""

from __future__ import annotations

import re
from pathlib import Path

from tools.integrations_page import PAGE, ROOT, add_rows, page, read_rows, table

KERAS = {"kind": "trainer", "name": "Keras", "version": "3.1", "gets": "callback", "passed": True}
WANDB = {"kind": "tracker", "name": "W&B", "version": "0.31", "gets": "sink", "passed": False}


def test_rows_take_the_place_of_earlier_ones(tmp_path: Path) -> None:
    path = tmp_path / "build" / "rows.json"
    assert read_rows(path) == []
    add_rows([KERAS, WANDB], path)
    add_rows([{**KERAS, "version": "3.2"}], path)
    assert read_rows(path) == [WANDB, {**KERAS, "version": "3.2"}]


def test_what_failed_is_not_claimed() -> None:
    assert table([WANDB, KERAS]).splitlines()[2:] == [
        "| Keras | 3.1 | callback |",
        "| W&B | 0.31 | not working: its tests fail |",
    ]


def test_a_kind_without_rows_keeps_its_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    made = page(text, [KERAS])
    assert "| Keras | 3.1 | callback |" in made
    marks = "<!-- trackers: written by tools/integrations_page.py -->"
    assert made.partition(marks)[2] == text.partition(marks)[2]
    assert page(text, []) == text


PACKAGES = {
    "Accelerate": "accelerate", "Ignite": "pytorch-ignite", "Keras (on torch)": "keras",
    "Lightning": "lightning", "sentence-transformers": "sentence-transformers",
    "skorch": "skorch", "Stable-Baselines3": "stable-baselines3",
    "transformers": "transformers", "TRL": "trl",
}  # fmt: skip


def other_than_pinned(text: str) -> list[str]:
    """Rows of trainers whose version is not the one that `make trainers` installs."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==(.+)$", pins, re.MULTILINE))
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ", text, re.MULTILINE)
    return [
        name for name, version in rows if name in PACKAGES and version != pinned[PACKAGES[name]]
    ]


def test_versions_that_are_shown_are_those_that_are_pinned() -> None:
    assert other_than_pinned(PAGE.read_text(encoding="utf-8")) == [], "run make trainers"


def test_another_version_is_noticed() -> None:
    assert other_than_pinned("| TRL | 0.1 | callback |\n| fastai | 0.1 | callback |") == ["TRL"]
