"""A change that is exact in every type, and what comes of an exhibit of the zoo with it."""

from __future__ import annotations

from typing import Any

import torch

from nethook.addresses.nested import map_tensors
from tests.zoo import Exhibit, observe


def halved(value: Any) -> Any:
    """Every floating-point tensor in a value, halved: exact in every type, and it shrinks."""

    def half(tensor: torch.Tensor) -> torch.Tensor:
        plain = tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized
        return tensor * 0.5 if plain and tensor.is_floating_point() else tensor

    return map_tensors(half, value)


def outcome(exhibit: Exhibit, around: Any) -> Any:
    """What came of a run: an observation, or the error that the change led to."""
    try:
        return observe(exhibit, around=around)
    except Exception as error:  # halving a value can break an exhibit, by hand as well
        return type(error)
