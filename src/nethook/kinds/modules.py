"""What kind of thing a module is, and what follows from that for its output.

    unit_dim(nn.Conv2d(3, 8, 3), dims=4)    # 1: a channel is a unit
    bounds(nn.Tanh())                       # (-1.0, 1.0)
    is_rectifier(nn.ReLU())                 # True

**A unit** is one place along one dimension of an output, over all samples and positions: a neuron
of a linear layer, a channel of a convolution. `unit_dim` says which dimension that is.

**A unit is dead** over a window when each of its elements was exactly zero: for every sample, every
position and every call. It adds nothing to what comes next, and behind a rectifier no gradient
brings it back. This is the one meaning of the word, in `nethook.stats`, `Callbacks.dead_units`,
`nethook.checkup`, the figures (`"silent"`) and the rule `dead-units`. What follows from it:

- ReLU, ReLU6: dead where the input is never above zero.
- LeakyReLU, PReLU, ELU: a unit that is always negative is alive. It is not zero, and its gradient
  is not zero.
- GELU, SiLU, Mish: dead only where the input is so far below zero that the output is rounded to
  zero, and with it the gradient.
- Sigmoid, tanh, hardtanh, the upper end of ReLU6: a unit that is stuck at an end is *saturated*,
  which is another thing: see `bounds`. It passes no gradient either, but it is not zero.
- NaN is not zero: a unit that is NaN is broken, not dead.

A zero in a single batch is no dead unit: half of what a rectifier gives is zero. The kernels of
`nethook.stats` count over a window, and `is_active` is what they count.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import nn

from nethook.kinds.keras_layers import channels_last, is_keras_class
from nethook.torch_private import BatchNorms, Dropouts, InstanceNorms

# Counted from the end where a batch is optional: a convolution takes (N, C, …) and (C, …).
_UNIT_DIMS: Final[tuple[tuple[tuple[type[nn.Module], ...], int], ...]] = (
    ((nn.Conv1d, nn.ConvTranspose1d), -2),
    ((nn.Conv2d, nn.ConvTranspose2d), -3),
    ((nn.Conv3d, nn.ConvTranspose3d), -4),
    ((nn.InstanceNorm1d, nn.LazyInstanceNorm1d), -2),
    ((nn.InstanceNorm2d, nn.LazyInstanceNorm2d), -3),
    ((nn.InstanceNorm3d, nn.LazyInstanceNorm3d), -4),
    ((nn.MaxPool1d, nn.AvgPool1d, nn.AdaptiveAvgPool1d, nn.AdaptiveMaxPool1d), -2),
    ((nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d), -3),
    ((nn.MaxPool3d, nn.AvgPool3d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool3d), -4),
    # These take a batch always.
    ((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm, nn.GroupNorm), 1),
    ((nn.LocalResponseNorm,), 1),
    # And these have features last, whatever comes before.
    ((nn.Linear, nn.Bilinear, nn.LayerNorm, nn.RMSNorm, nn.Embedding, nn.EmbeddingBag), -1),
    ((nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention), -1),
)

RECTIFIERS: Final = (nn.ReLU, nn.ReLU6, nn.Threshold)
"""Activations that are zero for all inputs below a threshold, and let no gradient through there."""

# Sigmoid and its like. ReLU6 is not one of them: at its lower end it is a rectifier at rest.
_BOUNDS: Final[tuple[tuple[type[nn.Module], tuple[float, float]], ...]] = (
    (nn.Sigmoid, (0.0, 1.0)),
    (nn.Hardsigmoid, (0.0, 1.0)),
    (nn.Tanh, (-1.0, 1.0)),
    (nn.Softsign, (-1.0, 1.0)),
)


_LINEAR: Final = (
    nn.Linear, nn.Bilinear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d,
    nn.ConvTranspose2d, nn.ConvTranspose3d, nn.Identity, nn.Flatten, nn.Unflatten, nn.AvgPool1d,
    nn.AvgPool2d, nn.AvgPool3d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d,
)  # fmt: skip
_NORMS: Final = (BatchNorms, InstanceNorms)
DIFFERS_IN_EVALUATION: Final = (BatchNorms, Dropouts)
"""Modules that compute something else in evaluation than in training."""


def kind_of(module: nn.Module) -> str | None:
    """What a module does to what passes through it, as far as its type says.

    "rectifier", "dropout", "norm", "bounded" or "linear"; None for everything else.
    """
    if is_rectifier(module):
        return "rectifier"
    if isinstance(module, Dropouts):
        return "dropout"
    if isinstance(module, _NORMS):
        return "norm"
    if bounds(module) is not None:
        return "bounded"
    return "linear" if isinstance(module, _LINEAR) else None


def unit_dim(module: nn.Module | None, dims: int) -> int | None:
    """The dimension of an output that counts its units.

    Linear, recurrent, embedding and layer-norm layers have them last, convolutions, poolings and
    batch norms in the channels. An activation, a block and an operation have no opinion of their
    own: they take that of the shape, channels for images and volumes (4 or 5 dimensions), else the
    last. Keras has channels last, unless a layer says otherwise.

    Arguments:
        module: where the output comes from; None: from an operation.
        dims: how many dimensions the output has.

    Returns:
        The dimension, counted from 0; None where there is none.
    """
    if dims == 0:
        return None
    dim = 1 if dims in (4, 5) else -1
    for types, usual in _UNIT_DIMS:
        if isinstance(module, types):
            dim = usual
            break
    if module is not None and is_keras_class(type(module)):
        dim = -1 if channels_last(module) else 1
    dim = dim + dims if dim < 0 else dim
    return dim if 0 <= dim < dims else None


def is_active(values: torch.Tensor) -> torch.Tensor:
    """Which elements are a sign of life: all that are not zero. A dead unit has none."""
    return values != 0


def is_rectifier(module: nn.Module) -> bool:
    """Whether a module is zero below a threshold, so that its units can die."""
    return isinstance(module, RECTIFIERS)


def bounds(module: nn.Module) -> tuple[float, float] | None:
    """The two ends that a module's output cannot pass, for activations that have two.

    A unit is saturated, and not dead, where it stays at one of them.
    """
    for kind, ends in _BOUNDS:
        if isinstance(module, kind):
            return ends
    if isinstance(module, nn.Hardtanh) and not isinstance(module, nn.ReLU6):
        return (float(module.min_val), float(module.max_val))
    return None
