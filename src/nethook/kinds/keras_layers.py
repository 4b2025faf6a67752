"""Layers of Keras on torch, which are modules, and keep their parts where torch does not look.

A layer has the layers below it in a list of its own, of which torch knows those alone that are
attributes; and its weights in a `ParameterDict` that nobody calls.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, cast

from torch import nn

_LAYERS: Final = "_layers"
_WEIGHTS: Final = "_torch_params"
_INSIDE: Final = (_WEIGHTS, "_functional")
"""What torch knows of a layer, and a user of Keras does not: `_functional` is how a `Sequential` is
called, by its `call`, with the same layers."""


def _is_layer(cls: type[nn.Module]) -> bool:
    layer = getattr(sys.modules.get("keras"), "Layer", None)
    return layer is not None and issubclass(cls, layer)


# The answer for a class never changes, for its bases were imported before it.
is_keras_class = cast(Callable[[type[nn.Module]], bool], lru_cache(maxsize=4096)(_is_layer))


def is_inside(name: str) -> bool:
    """Whether what torch knows under this name, in a layer, is the layer's own affair."""
    return name in _INSIDE


def hidden_layers(layer: nn.Module) -> dict[str, nn.Module]:
    """The layers below a layer of which torch does not know, by name. An input is none."""
    known = {id(child) for name, child in layer.named_children() if not is_inside(name)}
    inputs = getattr(getattr(sys.modules.get("keras"), "layers", None), "InputLayer", ())
    found: dict[str, nn.Module] = {}
    for below in vars(layer).get(_LAYERS) or ():
        if (
            isinstance(below, nn.Module)
            and id(below) not in known
            and not isinstance(below, inputs)
        ):
            own = name = str(below.name)
            number = 1
            while name in found or hasattr(layer, name):  # a name of its own
                name, number = f"{own}_{number}", number + 1
            found[name] = below
    return found


def holds_weights(name: str) -> bool:
    """Whether this is what a layer calls the `ParameterDict` of its weights."""
    return name == _WEIGHTS


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """What a user calls the weights of a layer: `kernel` of `sequential/dense/kernel`.

    Where two of a layer end alike, and where a name cannot be one, its path is kept.
    """
    last = {path: path.rpartition("/")[2] for path in paths}
    counts = Counter(last.values())
    return {path: name if counts[name] == 1 and name else path for path, name in last.items()}


def channels_last(layer: nn.Module) -> bool:
    """Whether the units of what a layer returns are in the last dimension."""
    return getattr(layer, "data_format", None) != "channels_first"
