"""`initialize_layer`: one layer, with the gain of its activation."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import nn
from torch.nn.utils import parametrize

from nethook.errors import InitError
from nethook.init.dataflow.fans import LayerWeight, gates_of, is_norm, layer_weights
from nethook.init.gains.activations import Activation
from nethook.init.gains.conventions import calculate_gain
from nethook.init.gains.integrals import moments
from nethook.init.plans.methods import Method, find_method
from nethook.init.plans.sampling import draw, fill_, why_not_fillable

Layer = TypeVar("Layer", bound=nn.Module)


def initialize_layer(
    layer: Layer,
    activation: Activation = "relu",
    *,
    method: str = "xavier_uniform",
    generator: torch.Generator | None = None,
) -> Layer:
    """Initialises one layer with the gain of an activation, and its biases with zero.

        layer = nn.Linear(100, 100)
        initialize_layer(layer, activation="relu")            # Xavier, gain √2
        initialize_layer(layer, "gelu", method="auto")        # exact gain, fan_in, orthogonal

    Arguments:
        layer: linear, bilinear, convolution (grouped, depthwise, transposed), attention,
            recurrent, embedding, or a normalisation (scale 1, shift 0).
        activation: as in `nethook.init.gain`; for `method="auto"` the one that feeds the layer.
        method: "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal",
            "orthogonal", "delta_orthogonal", "lecun" or "auto". `docs/init.md` says what "auto"
            does better.
        generator: where the random numbers come from; without one, torch's own.

    Weights between hidden states get gain 1 in any case, and so do the output projection of
    attention and, with "auto", embeddings: no activation feeds them.

    Returns:
        The layer.
    """
    rule = find_method(method)
    weights = layer_weights(layer)
    if weights is None:
        own = [name for name, _ in layer.named_parameters(recurse=False)]
        raise InitError(
            f"`layer` must be of a kind that nethook knows; got {type(layer).__name__}"
            + (f" ({', '.join(own)})" if own else " (it has no parameters of its own)")
            + ". For a whole model: nethook.init.apply_(model, nethook.init.plan(model, inputs))."
        )
    if rule.gain == "exact":
        gain = moments(activation).gain()
    else:
        gain = 1.0 if rule.gain == "one" else calculate_gain(activation)
    # All or nothing: what cannot be written is refused before anything is.
    for weight in weights:
        reason = why_not_fillable(_parameter(layer, weight.name))
        if reason is not None:
            raise InitError(f"{weight.name!r} cannot be initialised: {reason}.")
    for weight in weights:
        _start(layer, weight, rule, gain, generator)
    return layer


def _parameter(layer: nn.Module, name: str) -> torch.Tensor:
    owner = layer
    *path, last = name.split(".")
    for step in path:
        owner = getattr(owner, step)
    value: torch.Tensor = getattr(owner, last)
    return value


def _start(
    layer: nn.Module, weight: LayerWeight, rule: Method, gain: float,
    generator: torch.Generator | None,
) -> None:  # fmt: skip
    parameter = _parameter(layer, weight.name)
    shape = tuple(parameter.shape)
    if weight.layout is None:
        with torch.no_grad():
            parameter.fill_(1.0 if weight.role == "norm scale" and is_norm(layer) else 0.0)
            if rule.name == "auto" and weight.role == "recurrent bias ih" and gates_of(layer) == 4:
                hidden = shape[0] // 4  # input, forget, cell, output
                parameter[hidden : 2 * hidden] = 1.0
        return
    fed = weight.role not in ("recurrent hidden", "recurrent projection", "attention output")
    if weight.role == "embedding" and rule.name == "auto":
        fed = False
    std = rule.std(gain if fed else 1.0, weight.layout.fans(shape))
    values = draw(
        shape, rule.drawn_from(shape, weight.layout), std, weight.layout, generator,
        device=parameter.device, dtype=parameter.dtype,
    )  # fmt: skip
    _write(layer, weight, values)


def _write(layer: nn.Module, weight: LayerWeight, values: torch.Tensor) -> None:
    if isinstance(layer, nn.Embedding | nn.EmbeddingBag) and layer.padding_idx is not None:
        values[layer.padding_idx] = 0.0
    if parametrize.is_parametrized(layer, weight.name):
        try:
            with torch.no_grad():
                setattr(layer, weight.name, values)  # through its right inverse
        except (NotImplementedError, RuntimeError, ValueError) as error:
            raise InitError(
                f"{weight.name!r} is computed by a parametrisation that cannot be inverted: {error}"
            ) from error
        return
    fill_(_parameter(layer, weight.name), values, weight.name)
