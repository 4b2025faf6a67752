"""Since when something has been so."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.doctor.history import NOTHING, Curve
from nethook.doctor.signals.onset import first_step_of, onset


def curve(count: int, width: int = 1) -> Curve:
    ends = np.arange(1, count + 1) * width - 1
    return Curve(ends, np.zeros(count), np.full(count, width))


@pytest.mark.parametrize(
    ("chosen", "step"),
    [
        ([0, 0, 1, 1, 1, 1], 2),
        ([1, 1, 1, 1, 1, 1], 0),
        ([1, 0, 0, 0, 1, 1], 4),
        ([0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1], 1),  # one exception
        ([1, 1, 1, 0, 0, 0], None),
        ([0, 0, 0], None),
    ],
)
def test_the_first_step_from_which_on_it_is_so(chosen: list[int], step: int | None) -> None:
    assert onset(curve(len(chosen)), np.asarray(chosen, dtype=bool)) == step


def test_a_window_begins_before_its_last_step() -> None:
    assert first_step_of(curve(4, width=10), 2) == 20
    assert onset(curve(4, width=10), np.asarray([False, False, True, True])) == 20
    assert onset(NOTHING, np.zeros(0, dtype=bool)) is None
