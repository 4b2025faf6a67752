"""Which runs are shown, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.page.filtering import cell, matching, ordered
from nethook.page.folder import Entry
from nethook.page.summaries import Summary


def run(name: str, loss: float | None = None, state: str = "finished", **settings: str):
    metrics = {} if loss is None else {"loss": loss, "evaluation loss": 2 * loss}
    summary = Summary((), state, steps=len(name), settings=settings, metrics=metrics)
    return Entry(name, Path(name), name), summary


ROWS = [
    run("sweep-a", 0.5, lr="0.1", model="mlp"),
    run("sweep-b", 0.25, lr="0.01", model="CNN"),
    run("other", None, "crashed", lr="1e-4"),
    (Entry("new", Path("new"), "new"), None),
    run("nan", float("nan")),
]


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("", ["sweep-a", "sweep-b", "other", "new", "nan"]),
        ("SWEEP", ["sweep-a", "sweep-b"]),
        ("sweep b", ["sweep-b"]),
        ("lr>0.005", ["sweep-a", "sweep-b"]),
        ("lr<=0.01", ["sweep-b", "other"]),
        ("lr=0.1", ["sweep-a"]),
        ("lr=1e-4", ["other"]),
        ("model=cnn", ["sweep-b"]),
        ("state=crashed", ["other"]),
        ("evaluation_loss<0.6", ["sweep-b"]),
        ("lr>0.005 loss<0.4", ["sweep-b"]),
        ("nowhere=1", []),
    ],
)
def test_words_and_columns(asked: str, names: list[str]) -> None:
    assert [entry.name for entry, _ in matching(ROWS, asked)] == names


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("", ["sweep-a", "sweep-b", "other", "new", "nan"]),
        ("run", ["nan", "new", "other", "sweep-a", "sweep-b"]),
        ("loss", ["sweep-b", "sweep-a", "other", "new", "nan"]),
        ("-loss", ["sweep-a", "sweep-b", "other", "new", "nan"]),
        ("lr", ["other", "sweep-b", "sweep-a", "new", "nan"]),  # as numbers, not as texts
        ("nowhere", ["sweep-a", "sweep-b", "other", "new", "nan"]),
    ],
)
def test_order(by: str, names: list[str]) -> None:
    assert [entry.name for entry, _ in ordered(ROWS, by)] == names


def test_cells() -> None:
    assert cell(*ROWS[0], "steps") == 7
    assert cell(*ROWS[0], "loss") == 0.5
    assert cell(*ROWS[0], "lr") == "0.1"
    assert cell(*ROWS[3], "loss") is None
