"""Whether a weight is what its constructor drew at random, or something that somebody put there."""

from __future__ import annotations

from typing import Final

import torch

from nethook.stats.native import readable
from nethook.stats.sampling import sampled
from nethook.torch_private import version_of

_SAMPLE: Final = 64
_DISTINCT: Final = 0.9  # share of a sample that differs from the rest of it


def is_untouched(weight: torch.Tensor) -> bool:
    """Whether a weight was written once, by its constructor, and looks random.

    Fixed kernels (an upsampling, a blur, a range of numbers) have zeros, or few values. Only of
    weights in the memory of this process; False where it is not known.
    """
    if weight.is_inference() or version_of(weight) != 1 or not weight.numel():
        return False
    if not readable.is_readable(weight):
        return False
    some = sampled(weight.detach().reshape(-1), _SAMPLE, dim=0, step=1)
    return bool((some != 0).all()) and some.unique().numel() >= _DISTINCT * some.numel()
