"""`ablate`: a sweep in which every cell is taken out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import nn

from nethook.editing.catalogue import zero
from nethook.errors import OptionError
from nethook.interp.results.sweep import Sweep
from nethook.interp.sweeping.cells import Over
from nethook.interp.sweeping.changes import mean_of, resample
from nethook.interp.sweeping.sweep import sweep

How = Literal["zero", "mean", "resample"]


def ablate(
    model: nn.Module,
    inputs: Any,
    at: object,
    *,
    metric: Callable[[Any], torch.Tensor],
    over: Over = None,
    data: Any = None,
    how: How | None = None,
    each_position: bool = False,
    rows: int | None = None,
) -> Sweep:
    """Takes every cell out, one at a time, and measures what is lost.

        interp.ablate(model, x, at="transformer.h.*", over="heads", metric=fn, data=loader)
        interp.ablate(model, x, at="conv3", over="units", metric=fn)           # zeros

    Zeros are a value that the rest of the model may never have seen; the mean over data is the
    default where data are given.

    Arguments:
        model: any `nn.Module`. It runs in the mode it is in.
        inputs: a tensor, a tuple, a mapping, or `nethook.inputs(...)`.
        at, over, metric, rows: as in `interp.sweep`.
        data: for "mean" an iterable of inputs, such as a loader; for "resample" inputs whose rows
            are drawn from.
        how: "zero", "mean" or "resample". None means "mean" with data and "zero" without.
        each_position: the mean is taken for each position by itself.

    Returns:
        A `Sweep`.

    Cost: that of `interp.sweep`, and a forward per batch of data.
    """
    kind = how or ("zero" if data is None else "mean")
    change: Any
    if kind == "zero":
        if data is not None:
            raise OptionError('`data` must be left out with how="zero"; got some.')
        change = zero()
    elif kind in ("mean", "resample"):
        if data is None:
            raise OptionError(
                f'`data` must be given with how="{kind}", what it is taken from; got None.'
            )
        change = _mean(data, each_position=each_position) if kind == "mean" else resample(data)
    else:
        raise OptionError(f'`how` must be "zero", "mean" or "resample"; got {how!r}.')
    return sweep(model, inputs, at=at, over=over, change=change, metric=metric, rows=rows)


def _mean(data: Iterable[Any], *, each_position: bool) -> mean_of:
    if isinstance(data, torch.Tensor | tuple | dict):  # one batch, and not a list of batches
        data = [data]
    return mean_of(data, each_position=each_position)
