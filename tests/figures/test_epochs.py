"""Epochs of what was logged, and of the starts of loaders in a file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from nethook.figures.epochs import epochs_of
from nethook.figures.reading import Reading


def found(loaders: object, steps: object = 20, forwards: object = 20) -> list[Any] | None:
    info = {"loaders": loaders, "totals": {"steps": steps, "forwards": forwards}}
    reading = SimpleNamespace(scalars={}, run=SimpleNamespace(info=info))
    made = epochs_of(cast(Reading, reading))
    return None if made is None else [each.tolist() for each in made]


def loader(batches: object, *starts: object) -> list[dict[str, object]]:
    return [{"batches": batches, "starts": list(starts)}]


def test_a_pass_that_began_before_the_watch_counts() -> None:
    passes = loader(8, [0, 8, 8], [1, 16, 16])
    assert found(passes) == [[0, 8, 16, 20], [0.0, 1.0, 2.0, 2.5]]
    # Of Lightning's first calls, two are not seen.
    assert found(loader(8, [0, 6, 8], [1, 14, 16]), 20, 18) == [[0, 8, 16, 20], [0, 1, 2, 2.5]]
    assert found(loader(8, [0, 6, 8]), 12, 10) == [[0, 8, 12], [0.0, 1.0, 1.5]]
    assert found(loader(8, [0, 7, 7], [1, 15, 15]), 19, 19) == [[0, 7, 15, 19], [0, 1, 2, 2.5]]


def test_a_step_may_take_several_batches() -> None:
    assert found(loader(8, [0, 0, 0], [1, 8, 2]), 4, 16) == [[0, 2, 4], [0.0, 1.0, 2.0]]


@pytest.mark.parametrize(
    "loaders",
    [
        None, [], [None], [{}], loader(8), loader("x", [0, 0, 0]), loader(8, [0, 0]),
        loader(8, ["a", 0, 0]), loader(8, [0, 0, 0], [1, 10, 10]),  # of an evaluation
        loader(8, [0, 100, 100]), loader(8, [0, 4, 4]), loader(8, [0, 9, 9], [1, 17, 17]),
        loader(1, [0, 0, 0]), loader(8, [0, 0, 0]),  # calls are left over
        loader(8, [0, 0, 4], [1, 8, 12]),  # goes on from another session
        loader(1 << 80, [0, 0, 0]), loader(8, [0, 0, 1 << 80]), loader(8, [0, 8, 8], [1, 16, 8]),
    ],
)  # fmt: skip
def test_what_says_nothing_gives_none(loaders: object) -> None:
    assert found(loaders) is None


def test_totals_of_a_stranger() -> None:
    assert found(loader(8, [0, 0, 0]), "x", None) is None
    assert found(loader(8, [0, 0, 0]), 0, 8) is None


def test_what_is_logged_goes_first() -> None:
    class Logged(SimpleNamespace):
        def __len__(self) -> int:
            return 2

    info = {"loaders": loader(8, [0, 0, 0]), "totals": {"steps": 8, "forwards": 8}}
    scalars = {"epoch": Logged(step=np.array([0, 9]), value=np.array([0.0, 4.0]))}
    reading = SimpleNamespace(scalars=scalars, run=SimpleNamespace(info=info))
    made = epochs_of(cast(Reading, reading))
    assert made is not None
    assert made[1].tolist() == [0.0, 4.0]
