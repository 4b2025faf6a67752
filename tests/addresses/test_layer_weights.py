"""Weights of layers of Keras, which every layer above them lists as well.

The layers are hidden as Keras hides them; tests/integrations has Keras itself.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.addresses.layer_weights import weights_of_layers
from nethook.addresses.tree import Tree


@pytest.fixture
def keras(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A `Layer` whose list of weights has those of the layers below it."""

    class Layer(nn.Module):
        def __init__(self, name: str, *below: Any, own: tuple[str, ...] = ()) -> None:
            super().__init__()
            self.name = name
            self._layers = list(below)
            self.weights = {f"{name}/{each}": nn.Parameter(torch.ones(2)) for each in own}
            for layer in below:
                self.weights |= {f"{name}/{path}": w for path, w in layer.weights.items()}
            self._torch_params = nn.ParameterDict(self.weights)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    library = ModuleType("keras")
    library.Layer = Layer  # type: ignore[attr-defined]
    library.layers = SimpleNamespace(InputLayer=())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keras", library)
    return library


def names_of(model: nn.Module) -> dict[str, list[str]]:
    """Every parameter with the addresses of its owners."""
    return {
        site.address: [owner.address for owner in site.owners]
        for site in Tree(model).parameters().sites
    }


def test_a_weight_is_that_of_the_innermost_layer(keras: Any) -> None:
    block = keras.Layer("block", keras.Layer("dense", own=("kernel", "bias")), own=("scale",))
    model = keras.Layer("model", block, keras.Layer("head", own=("kernel",)))
    assert names_of(model) == {
        "block.scale": ["block"], "block.dense.kernel": ["block.dense"],
        "block.dense.bias": ["block.dense"], "head.kernel": ["head"],
    }  # fmt: skip
    found = nethook.get_parameter(model, "block.dense.bias")
    assert found is block._layers[0].weights["dense/bias"]


def test_the_model_may_have_weights_of_its_own(keras: Any) -> None:
    model = keras.Layer("model", keras.Layer("dense", own=("kernel",)), own=("temperature",))
    assert names_of(model) == {"temperature": [""], "dense.kernel": ["dense"]}
    assert names_of(nn.Sequential(model)) == {
        "0.temperature": ["0"], "0.dense.kernel": ["0.dense"],
    }  # fmt: skip


def test_a_sequential_lists_its_weights_once_more(keras: Any) -> None:
    dense = keras.Layer("dense", own=("kernel",))
    model = keras.Layer("sequential", dense)
    model._functional = keras.Layer("functional", dense)
    assert names_of(model) == {"dense.kernel": ["dense"]}


def test_weights_that_end_alike_keep_their_paths(keras: Any) -> None:
    layer = keras.Layer("gru", own=("forward/kernel", "backward/kernel", "bias"))
    assert names_of(layer).keys() == {"gru/forward/kernel", "gru/backward/kernel", "bias"}


def test_what_is_no_layer_of_keras_stays_as_it_is(keras: Any) -> None:
    holder = nn.Module()
    holder._torch_params = nn.ParameterDict({"w": nn.Parameter(torch.ones(2))})
    modules = {"": holder, "_torch_params": holder._torch_params}
    assert weights_of_layers(modules) == {}
    assert list(names_of(nn.Sequential(holder, keras.Layer("dense")))) == ["0._torch_params.w"]
