"""Blending an output with a fixed value: `x * (1 - ablation) + replacement * ablation`."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import numpy as np
import torch


def apply_ablation_replacement(
    x: torch.Tensor,
    imodel: object = None,  # noqa: ARG001  what a rule is called with
    ablation: Any = None,
    replacement: Any = None,
) -> torch.Tensor:
    """The default rule of `InstrumentedModel.edit_layer`.

    Without an ablation, a replacement replaces all; without a replacement, it is zero.
    """
    if ablation is None and replacement is None:
        return x
    given = {"ablation": 1.0 if ablation is None else ablation, "replacement": replacement}
    amount = make_matching_tensor(given, "ablation", x)
    value = make_matching_tensor(given, "replacement", x)
    kept: torch.Tensor = x * (1 - amount)
    if value is not None:
        kept = kept + value * amount
    return kept


def make_matching_tensor(valuedict: MutableMapping[str, Any], name: str, data: torch.Tensor) -> Any:
    """A value of a dict as a tensor that can be multiplied with `data`; None if it is None.

    It gets the device and type of `data`. One with fewer dimensions is aligned at dimension 1,
    that of the channels: shape (C,) becomes (1, C, 1, 1) for an image. What was made is put into
    the dict, for the next time, unless a gradient is to flow to what was there.
    """
    value = valuedict.get(name)
    if value is None:
        return None
    if not isinstance(value, torch.Tensor):
        value = torch.from_numpy(np.array(value))
    value = value.to(device=data.device, dtype=data.dtype)
    if value.ndim < data.ndim:
        value = value.reshape(1, *value.shape, *[1] * (data.ndim - value.ndim - 1))
    if not value.requires_grad:
        valuedict[name] = value
    return value


def get_and_match_shape(valuedict: MutableMapping[str, Any], name: str, data: torch.Tensor) -> Any:
    """As `make_matching_tensor`, and an image of another size is resized by max pooling.

    Where there are fewer channels (but more than one), those that are missing are zero.
    """
    value = make_matching_tensor(valuedict, name, data)
    if value is None or data.ndim != 4:
        return value
    missing = data.shape[1] - value.shape[1]
    if missing > 0 and value.shape[1] > 1:
        value = torch.nn.functional.pad(value, (0, 0, 0, 0, 0, missing))
    if value.shape[2:] != data.shape[2:] and value.shape[2:] != (1, 1):
        value = torch.nn.functional.adaptive_max_pool2d(value, list(data.shape[2:]))
    if not value.requires_grad:
        valuedict[name] = value
    return value
