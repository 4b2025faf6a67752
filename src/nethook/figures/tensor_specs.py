"""Figures from tensors: of a tape, of a model, or of anything that numpy can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Floats, Picture, Spec
from nethook.drawing.pictures import colour_mosaic, maps, mosaic
from nethook.drawing.training.distribution import values_of_layers
from nethook.errors import InputsError, OptionError

CHANNELS: Final = 64
"""Pictures in one grid, unless more are asked for."""
_SHARES: Final = (0.01, 0.25, 0.5, 0.75, 0.99)
_ELEMENTS: Final = 1_000_000  # of one layer that quantiles are taken from


def as_array(value: Any, argument: str) -> Floats:
    """Numbers of a tensor, a record of a tape, or an array; None of them is changed."""
    if hasattr(value, "entries") and hasattr(value, "last"):  # a record of a tape
        value = value.last.output
    value = _first_tensor(value)
    if hasattr(value, "detach"):
        value = value.detach()
        value = value.abs() if value.is_complex() else value
        return np.asarray(value.to("cpu").to(dtype=_float64()).numpy())
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputsError(
            f"`{argument}` must be a tensor or an array, or hold one at `address`; got "
            f"{type(value).__name__}."
        ) from None


def _first_tensor(value: Any) -> Any:
    """Of a nested output the first tensor: the rest are states and weights beside it."""
    while isinstance(value, list | tuple) and value and hasattr(value[0], "shape"):
        value = value[0]
    if isinstance(value, Mapping) and value:
        return _first_tensor(next(iter(value.values())))
    return value


def _float64() -> Any:
    import torch

    return torch.float64


def feature_maps_spec(
    maps_of: Floats, name: str, *, sample: int, channels: int, each: bool
) -> Spec:
    """Channels (N, C, H, W), (C, H, W) or (H, W) as pictures."""
    pixels = _one_sample(maps_of, sample, name)
    count = len(pixels)
    shown = [Picture(str(index), pixels[index]) for index in range(min(count, channels))]
    more = f", first {len(shown)} of {count} channels" if count > len(shown) else ""
    signed = bool(np.nanmin(pixels) < 0)
    title = f"Feature maps of {name}{more}" if name else f"Feature maps{more}"
    return mosaic(title, shown, signed=signed, each=each)


def _one_sample(array: Floats, sample: int, name: str) -> Floats:
    """The channels (C, H, W) of one sample."""
    if array.ndim == 4:
        if not -len(array) <= sample < len(array):
            raise OptionError(_not_a_sample(sample, len(array)))
        array = array[sample]
    elif array.ndim == 3 and name:
        # (C, H, W) of one sample, or (N, tokens, features): both are shown as they lie.
        pass
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or 0 in array.shape:
        raise InputsError(
            "Feature maps must have the shape (samples, channels, height, width), or the last two "
            f"or three of these; got {tuple(array.shape)}{f' of {name!r}' if name else ''}. For "
            "other shapes use nethook.figures.activations."
        )
    return array


def _not_a_sample(sample: int, count: int) -> str:
    return f"`sample` must be a number below {count}, the size of the batch; got {sample}."


def filters_spec(weight: Floats, name: str, *, most: int, each: bool) -> Spec:
    """The filters of a convolution (out, in, H, W), or the rows of a matrix, as pictures."""
    title = f"Filters of {name}" if name else "Filters"
    if weight.ndim == 4 and weight.shape[1] == 3:
        count = min(len(weight), most)
        return colour_mosaic(f"{title} ({count} of {len(weight)})", list(weight[:count]))
    if weight.ndim == 2:
        title = f"{title} ({weight.shape[0]} × {weight.shape[1]})"
        return mosaic(title, [Picture("", weight)], signed=True, axes=("unit", "input"))
    if weight.ndim == 3:
        weight = weight[:, :, None, :]
    if weight.ndim != 4:
        raise InputsError(
            f"Filters must have the shape (out, in, height, width); got {tuple(weight.shape)}."
        )
    out, into = weight.shape[:2]
    shown = [
        Picture(
            f"{index // into}:{index % into}" if into > 1 else str(index),
            weight[index // into, index % into],
        )
        for index in range(min(out * into, most))
    ]
    title += (
        f" ({len(shown)} of {out * into}, output:input)"
        if into > 1
        else f" ({len(shown)} of {out})"
    )
    columns = into if into <= 16 and into > 1 else 0
    return mosaic(title, shown, signed=True, each=each, columns=columns)


def attention_spec(
    probabilities: Floats, name: str, *, tokens: Sequence[str] | None, sample: int, heads: int
) -> Spec:
    """Attention (N, heads, queries, keys), (heads, queries, keys) or (queries, keys)."""
    weights = probabilities
    if weights.ndim == 4:
        if not -len(weights) <= sample < len(weights):
            raise OptionError(_not_a_sample(sample, len(weights)))
        weights = weights[sample]
    if weights.ndim == 2:
        weights = weights[None]
    if weights.ndim != 3:
        raise InputsError(
            "Attention must have the shape (samples, heads, queries, keys), or the last two or "
            f"three of these; got {tuple(probabilities.shape)}."
        )
    _, queries, keys = weights.shape
    if tokens is not None and len(tokens) not in (queries, keys):
        raise OptionError(
            f"`tokens` must be as many as the {queries} queries or the {keys} keys; got "
            f"{len(tokens)}."
        )
    rows = tokens if tokens is not None and len(tokens) == queries else range(queries)
    columns = tokens if tokens is not None and len(tokens) == keys else range(keys)
    shown = [Picture(f"head {index}", head) for index, head in enumerate(weights[:heads])]
    title = f"Attention of {name}" if name else "Attention"
    if len(weights) > len(shown):
        title += f", first {len(shown)} of {len(weights)} heads"
    return maps(title, shown, [str(label) for label in rows], [str(label) for label in columns])


def snapshots_spec(
    pictures: Mapping[int, Floats], name: str, *, sample: int, channels: int
) -> Spec:
    """The same channels at several steps: a row a step, on one scale of colours."""
    if not pictures:
        raise InputsError("`pictures` must be {step: tensor, ...} or a run; got an empty mapping.")
    rows = {step: _one_sample(array, sample, name) for step, array in sorted(pictures.items())}
    shapes = {array.shape for array in rows.values()}
    if len(shapes) > 1:
        raise InputsError(f"`pictures` must all have one shape; got {sorted(shapes)}.")
    count = min(channels, next(iter(shapes))[0])
    shown = [
        Picture(f"step {step:,}" if channel == 0 else str(channel), array[channel])
        for step, array in rows.items()
        for channel in range(count)
    ]
    signed = any(float(np.nanmin(array)) < 0 for array in rows.values())
    title = f"{name} over training" if name else "Over training"
    return mosaic(title, shown, columns=count, signed=signed)


def activations_spec(values: Mapping[str, Floats]) -> Spec:
    """How the values of several layers are spread."""
    quantiles, zeros = [], []
    for array in values.values():
        flat = array.ravel()
        flat = flat[:: max(1, flat.size // _ELEMENTS)]
        finite = flat[np.isfinite(flat)]
        quantiles.append(
            np.quantile(finite, _SHARES) if finite.size else np.full(len(_SHARES), np.nan)
        )
        zeros.append(float((flat == 0).mean()) if flat.size else np.nan)
    title = "Activations: median, middle half, and 98 % of each layer's values"
    return values_of_layers(title, list(values), np.array(quantiles), _SHARES, np.array(zeros))
