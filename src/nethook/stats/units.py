"""What a module's type says of its output: which dimension counts its units, and its bounds."""

from __future__ import annotations

from torch import nn

# Counted from the end where a batch is optional: a convolution takes (N, C, …) and (C, …).
_UNIT_DIMS: tuple[tuple[tuple[type[nn.Module], ...], int], ...] = (
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
)

# Sigmoid and its like. ReLU6 is not one of them: at its lower end it is a rectifier at rest.
_BOUNDS: tuple[tuple[type[nn.Module], tuple[float, float]], ...] = (
    (nn.Sigmoid, (0.0, 1.0)),
    (nn.Hardsigmoid, (0.0, 1.0)),
    (nn.Tanh, (-1.0, 1.0)),
    (nn.Softsign, (-1.0, 1.0)),
)


def unit_dim(module: nn.Module, dims: int) -> int | None:
    """The dimension of a module's output that counts its units.

    Linear, recurrent, embedding and normalising layers have them in the last, convolutions and
    poolings in the channels. An activation has no opinion of its own: it takes that of the shape,
    channels for images and volumes (4 or 5 dimensions), else the last.

    Arguments:
        module: where the output comes from.
        dims: how many dimensions the output has.

    Returns:
        The dimension, counted from 0; None where there is none.
    """
    if dims == 0:
        return None
    dim = -1
    for types, place in _UNIT_DIMS:
        if isinstance(module, types):
            dim = place
            break
    else:
        if dims in (4, 5) and type(module) in _ELEMENTWISE:
            dim = 1
    dim = dim + dims if dim < 0 else dim
    return dim if 0 <= dim < dims else None


def bounds(module: nn.Module) -> tuple[float, float] | None:
    """The two ends that a module's output cannot pass, for activations that have two."""
    for kind, ends in _BOUNDS:
        if isinstance(module, kind):
            return ends
    if isinstance(module, nn.Hardtanh) and not isinstance(module, nn.ReLU6):
        return (float(module.min_val), float(module.max_val))
    return None


_ELEMENTWISE = frozenset(
    {
        nn.ReLU,
        nn.ReLU6,
        nn.LeakyReLU,
        nn.PReLU,
        nn.RReLU,
        nn.ELU,
        nn.SELU,
        nn.CELU,
        nn.GELU,
        nn.SiLU,
        nn.Mish,
        nn.Softplus,
        nn.Softsign,
        nn.Softshrink,
        nn.Hardshrink,
        nn.Hardswish,
        nn.Hardsigmoid,
        nn.Hardtanh,
        nn.Sigmoid,
        nn.Tanh,
        nn.Tanhshrink,
        nn.LogSigmoid,
        nn.Threshold,
        nn.Identity,
        nn.Dropout,
        nn.Dropout2d,
        nn.Dropout3d,
        nn.AlphaDropout,
        nn.FeatureAlphaDropout,
    }
)
