"""Runs that differ in nothing but their seed."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nethook.page.folder import Entry
from nethook.page.groups import group_names, groups_of, groups_spec
from nethook.page.summaries import Summary


def run(name: str, loss: float, course=None, **settings: str) -> tuple[Entry, Summary]:
    course = course or (np.arange(5), np.linspace(2, loss, 5))
    summary = Summary((), "finished", settings=settings, metrics={"loss": loss}, course=course)
    return Entry(name, Path(name), name), summary


RUNS = [
    run("a", 1.0, lr="0.1", seed="0", model="mlp"),
    run("b", 3.0, lr="0.1", seed="1", model="mlp"),
    run("c", 5.0, lr="0.2", seed="0", model="mlp"),
]


def test_seeds_stand_together_with_their_mean_and_spread() -> None:
    one, two = groups_of(RUNS)
    assert [entry.name for entry, _ in one.runs] == ["a", "b"]
    assert (one.mean, one.std) == (2.0, pytest.approx(math.sqrt(2)))
    assert two.mean == 5.0
    assert math.isnan(two.std)


def test_a_group_is_called_what_tells_it_apart() -> None:
    assert group_names(groups_of(RUNS)) == ["lr=0.1", "lr=0.2"]
    assert group_names(groups_of(RUNS[:2])) == ["all runs"]
    assert group_names([]) == []


def test_runs_of_other_scripts_and_models_are_other_groups() -> None:
    origins = [
        ("a.py", "Net, 9 parameters"),
        ("a.py", "Net, 9 parameters"),
        ("b.py", ""),
        ("a.py", ""),
    ]
    runs = [
        (entry, replace(summary, origin={"script": script, "model": model}))
        for (entry, summary), (script, model) in zip([*RUNS[:2], *RUNS[:2]], origins, strict=True)
    ]
    groups = groups_of(runs)
    assert [len(group.runs) for group in groups] == [2, 1, 1]
    assert group_names(groups) == [
        "model=Net, 9 parameters script=a.py", "model= script=b.py", "model= script=a.py"
    ]  # fmt: skip


def test_a_band_spans_the_runs_and_its_line_is_their_mean() -> None:
    short = run(
        "d", 4.0, (np.arange(3), np.array([2.0, 3.0, 4.0])), lr="0.1", seed="2", model="mlp"
    )
    spec = groups_spec(groups_of([*RUNS[:2], short]))
    assert spec is not None
    low, high, mean = spec["data"]
    # At step 2 all three have come, at step 4 two of them.
    at = {int(step): index for index, step in enumerate(mean["x"])}
    values = [1.5, 2.5, 4.0]
    assert low["y"][at[2]] == min(values)
    assert high["y"][at[2]] == max(values)
    assert mean["y"][at[2]] == pytest.approx(np.mean(values))
    assert mean["y"][at[4]] == pytest.approx(2.0)


def test_runs_without_a_loss_have_no_figure() -> None:
    nothing = (Entry("a", Path("a"), "a"), Summary((), "finished"))
    assert groups_spec(groups_of([nothing])) is None
    broken = (Entry("b", Path("b"), "b"), Summary((), "broken"))
    assert groups_of([broken]) == []
