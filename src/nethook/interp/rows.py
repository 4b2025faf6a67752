"""Rows of a batch: inputs repeated, so that several variants of a run share one."""

from __future__ import annotations

import torch

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors


def repeat_rows(inputs: Inputs, times: int, batch: int) -> Inputs:
    """Inputs whose tensors with `batch` rows have `times` as many: all rows, again and again."""

    def repeated(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim == 0 or tensor.shape[0] != batch:
            return tensor  # it is shared by all rows
        return tensor.repeat(times, *[1] * (tensor.ndim - 1))

    if times == 1:
        return inputs
    return Inputs(map_tensors(repeated, inputs.args), map_tensors(repeated, dict(inputs.kwargs)))
