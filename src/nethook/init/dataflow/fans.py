"""How many weights meet in an output, and how many an input goes through.

torch guesses both from the shape of a weight, and is wrong for grouped and depthwise convolutions
(fan_out), for transposed ones (the two are swapped, and strides matter), for packed projections
(three matrices that are taken for one) and for embeddings. A `Layout` says what a shape cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from nethook.torch_private import BatchNorms, InstanceNorms

Form = Literal["linear", "conv", "conv_transpose", "lookup"]


@dataclass(frozen=True, slots=True)
class Layout:
    """What the dimensions of a weight mean.

    `linear` is (out, in), or (in, out) with `in_first`; `conv` (out, in / groups, *kernel);
    `conv_transpose` (in, out / groups, *kernel); `lookup` (entries, out). `blocks` matrices lie
    one after the other along the dimension of the outputs (three in a packed projection).
    """

    form: Form
    groups: int = 1
    blocks: int = 1
    stride: int = 1  # the product over all dimensions
    in_first: bool = False

    def fans(self, shape: tuple[int, ...]) -> tuple[float, float]:
        """fan_in and fan_out of a weight of that shape.

        fan_in is the number of weights that are summed in an output, fan_out the number of
        weights that an input goes through; where a stride makes that differ from place to
        place, the mean.
        """
        kernel = math.prod(shape[2:])
        if self.form == "lookup":
            return 1.0, float(shape[1])
        if self.form == "conv":
            return float(shape[1] * kernel), shape[0] / self.groups * kernel / self.stride
        if self.form == "conv_transpose":
            return shape[0] / self.groups * kernel / self.stride, float(shape[1] * kernel)
        out, fan_in = (shape[1], shape[0]) if self.in_first else (shape[0], shape[1])
        return float(fan_in * kernel), out / self.blocks * kernel

    def matrices(self, weight: torch.Tensor) -> torch.Tensor:
        """The weight as (matrices, outputs, inputs), a view where there can be one."""
        if self.form == "lookup":
            return weight.unsqueeze(0)
        if self.form == "conv":
            return weight.reshape(self.groups, weight.shape[0] // self.groups, -1)
        if self.form == "conv_transpose":
            parts = weight.reshape(self.groups, weight.shape[0] // self.groups, weight.shape[1], -1)
            return parts.transpose(1, 2).reshape(self.groups, weight.shape[1], -1)
        if self.in_first:
            parts = weight.reshape(weight.shape[0], self.blocks, -1)
            return parts.permute(1, 2, 0)
        return weight.reshape(self.blocks, weight.shape[0] // self.blocks, -1)

    def weight(self, matrices: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        """The inverse of `matrices`."""
        if self.form == "conv_transpose":
            parts = matrices.reshape(self.groups, shape[1], shape[0] // self.groups, -1)
            return parts.transpose(1, 2).reshape(shape)
        if self.in_first:
            return matrices.permute(2, 0, 1).reshape(shape)
        return matrices.reshape(shape)


@dataclass(frozen=True, slots=True)
class LayerWeight:
    """One parameter of a layer: its name there, what it is, and how it is laid out."""

    name: str
    role: str
    layout: Layout | None = None  # None where it is no matrix: a bias, a scale


_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_GATES = {nn.LSTM: 4, nn.LSTMCell: 4, nn.GRU: 3, nn.GRUCell: 3, nn.RNN: 1, nn.RNNCell: 1}


def layer_weights(layer: nn.Module) -> list[LayerWeight] | None:
    """The parameters of a layer that torch knows; None where the layer is of another kind."""
    for kinds, describe in _KINDS:
        if isinstance(layer, kinds):
            return [weight for weight in describe(layer) if _has(layer, weight.name)]
    return None


def _has(layer: nn.Module, name: str) -> bool:
    # Asked by attribute: a parametrised weight is no parameter of its layer any more.
    value: Any = layer
    for step in name.split("."):
        value = getattr(value, step, None)
    return value is not None


def _linear(_: Any) -> list[LayerWeight]:
    return [LayerWeight("weight", "weight", Layout("linear")), LayerWeight("bias", "bias")]


def _bilinear(_: Any) -> list[LayerWeight]:
    # (out, in1, in2): an output is a sum over all pairs, as over the taps of a kernel.
    return [LayerWeight("weight", "weight", Layout("conv")), LayerWeight("bias", "bias")]


def _convolution(layer: Any) -> list[LayerWeight]:
    layout = Layout("conv", groups=layer.groups, stride=math.prod(layer.stride))
    return [LayerWeight("weight", "weight", layout), LayerWeight("bias", "bias")]


def _transposed(layer: Any) -> list[LayerWeight]:
    layout = Layout("conv_transpose", groups=layer.groups, stride=math.prod(layer.stride))
    return [LayerWeight("weight", "weight", layout), LayerWeight("bias", "bias")]


def _embedding(_: Any) -> list[LayerWeight]:
    return [LayerWeight("weight", "embedding", Layout("lookup"))]


def _attention(_: Any) -> list[LayerWeight]:
    square = Layout("linear")
    return [
        LayerWeight("in_proj_weight", "query, key, value", Layout("linear", blocks=3)),
        LayerWeight("q_proj_weight", "query", square),
        LayerWeight("k_proj_weight", "key", square),
        LayerWeight("v_proj_weight", "value", square),
        LayerWeight("in_proj_bias", "bias"),
        LayerWeight("bias_k", "bias of keys"),
        LayerWeight("bias_v", "bias of values"),
        LayerWeight("out_proj.weight", "attention output", square),
        LayerWeight("out_proj.bias", "bias"),
    ]


def _recurrent(layer: Any) -> list[LayerWeight]:
    gates = next(count for cls, count in _GATES.items() if isinstance(layer, cls))
    weights = []
    for name, _ in layer.named_parameters():
        kind = name.split("_")[1]  # weight_ih_l0, bias_hh_l1_reverse, weight_hr_l0
        if name.startswith("bias"):
            weights.append(LayerWeight(name, f"recurrent bias {kind}"))
        elif kind == "hr":
            weights.append(LayerWeight(name, "recurrent projection", Layout("linear")))
        else:
            role = "recurrent input" if kind == "ih" else "recurrent hidden"
            weights.append(LayerWeight(name, role, Layout("linear", blocks=gates)))
    return weights


def _norm(_: Any) -> list[LayerWeight]:
    return [LayerWeight("weight", "norm scale"), LayerWeight("bias", "norm shift")]


_NORMS = (
    BatchNorms, InstanceNorms, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm,
)  # fmt: skip
_KINDS: tuple[tuple[tuple[type[nn.Module], ...], Callable[[Any], list[LayerWeight]]], ...] = (
    ((nn.Linear,), _linear),
    ((nn.Bilinear,), _bilinear),
    (_CONVOLUTIONS, _convolution),
    (_TRANSPOSED, _transposed),
    ((nn.Embedding, nn.EmbeddingBag), _embedding),
    ((nn.MultiheadAttention,), _attention),
    ((*_GATES,), _recurrent),
    (_NORMS, _norm),
)


def gates_of(layer: nn.Module) -> int:
    """How many gates a recurrent layer has; 0 where it is none."""
    return next((count for cls, count in _GATES.items() if isinstance(layer, cls)), 0)


def is_norm(layer: nn.Module) -> bool:
    """Whether a layer normalises."""
    return isinstance(layer, _NORMS)
