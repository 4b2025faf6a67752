"""Since when something has been so, from the record."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nethook.doctor.history import Curve

MOSTLY = 0.8
"""Share of the windows up to the end in which it must be so: one batch may be an exception."""


def onset(curve: Curve, chosen: npt.NDArray[np.bool_]) -> int | None:
    """The first step from which on nearly all windows are chosen; None where the last ones are not.

    Arguments:
        curve: what was measured.
        chosen: of each of its windows, whether it is so.
    """
    if not len(curve):
        return None
    so_far = np.cumsum(chosen[::-1]) / np.arange(1, len(chosen) + 1)  # from the end backwards
    good = np.flatnonzero((so_far[::-1] >= MOSTLY) & chosen)
    return first_step_of(curve, int(good[0])) if len(good) else None


def since(curve: Curve, chosen: npt.NDArray[np.bool_]) -> int:
    """The onset; where the last windows are not chosen, the first that is: one must be."""
    began = onset(curve, chosen)
    return first_step_of(curve, int(np.argmax(chosen))) if began is None else began


def first_step_of(curve: Curve, place: int = 0) -> int:
    """The first step of a window."""
    return max(0, int(curve.step[place] - curve.steps[place] + 1))
