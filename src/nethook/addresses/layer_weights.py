"""The weights of layers of Keras, by the names that their users know them by.

A layer lists its weights in a `ParameterDict`, by paths, and so does every layer above it:

    _torch_params               "sequential/dense/kernel", "sequential/dense/bias", ...
    dense._torch_params         "sequential/dense/kernel", "sequential/dense/bias"

Each weight is the innermost layer's: `dense.kernel`, `dense.bias`.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from nethook.kinds.keras_layers import holds_weights, is_inside, is_keras_class, short_names
from nethook.torch_private import parameters_of


def weights_of_layers(
    modules: Mapping[str, nn.Module],
) -> dict[str, dict[str, torch.Tensor]]:
    """Every such list of a model, by the address of the layer: its own weights by their names.

    Arguments:
        modules: all modules of the model by address.
    """
    lists = {}
    for address, module in modules.items():
        layer, _, last = address.rpartition(".")
        above = modules.get(layer)
        if above is not None and holds_weights(last) and is_keras_class(type(above)):
            lists[layer] = parameters_of(module)
    innermost: dict[int, str] = {}
    for layer in sorted(lists, key=lambda layer: (layer != "", layer.count("."))):
        if not any(map(is_inside, layer.split("."))):
            innermost.update(dict.fromkeys(map(id, lists[layer].values()), layer))
    found: dict[str, dict[str, torch.Tensor]] = {}
    for layer, weights in lists.items():
        own = {
            path: weight
            for path, weight in weights.items()
            if weight is not None and innermost.get(id(weight)) == layer
        }
        names = short_names(own)
        found[layer] = {names[path]: weight for path, weight in own.items()}
    return found
