"""The epoch of each step: as the program logs it, else from the passes over its data loader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Floats, Integers
from nethook.figures.reading import Reading

_UNSEEN: Final = 3  # calls at most that come before a watch which begins by itself
_LOGGED: Final = ("epoch", "epochs", "trainer/epoch", "train/epoch")

Epochs = tuple[Integers, Floats]


def epochs_of(reading: Reading) -> Epochs | None:
    """Steps, and the epoch of each; None where it is not known."""
    for name in _LOGGED:
        scalar = reading.scalars.get(name)
        if scalar is not None and len(scalar) > 1:
            there = np.isfinite(scalar.value)
            return scalar.step[there], np.maximum.accumulate(scalar.value[there])
    info = reading.run.info
    loaders, totals = info.get("loaders"), info.get("totals")
    if not isinstance(loaders, list) or not isinstance(totals, Mapping):
        return None
    steps, forwards = totals.get("steps"), totals.get("forwards")
    if not isinstance(steps, int) or not isinstance(forwards, int):
        return None
    for loader in loaders:
        found = _passes(loader, steps, forwards)
        if found is not None:
            return found
    return None


def _passes(loader: Any, steps: int, forwards: int) -> Epochs | None:
    """Epochs, where a loader is the one that is trained with.

    It is, where the model was called in training once for each of its batches between any two
    starts. A loader for evaluations, one that is started anew for every batch, and one whose passes
    are broken off are not.

    Arguments:
        loader: `{"batches": …, "starts": [[number, calls before, step], …]}`.
        steps: of the run.
        forwards: calls of the model in training.
    """
    try:
        batches = int(np.int64(loader["batches"]))
        starts = np.array(loader["starts"], dtype=np.int64).reshape(-1, 3)
    except (TypeError, ValueError, KeyError, OverflowError):
        return None
    if batches < 2 or not len(starts):
        return None
    number, before, step = starts.T
    if (np.diff(before) != batches * np.diff(number)).any() or (np.diff(step) < 1).any():
        return None
    if before[0] == 0 and step[0] == 0:
        at, place = [0, *number[1:]], [0, *step[1:]]
    elif max(1, 0 if len(starts) > 1 else batches - _UNSEEN) <= before[0] <= batches:
        # `nethook run` finds the model while the first pass is under way.
        at, place = [0, *(number + 1)], [0, *step]
    else:  # part of a run that goes on from an earlier one, or not trained with
        return None
    rest = forwards - int(before[-1])
    every = int(number[-1] - number[-2]) if len(number) > 1 else 1  # of many, some are kept
    if not 0 <= rest <= batches * every or steps <= place[-1]:
        return None
    at, place = [*at, at[-1] + rest / batches], [*place, steps]
    return np.array(place, dtype=np.int64), np.array(at, dtype=np.float64)
