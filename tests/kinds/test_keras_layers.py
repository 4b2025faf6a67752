"""Layers that are hidden from torch as Keras hides them. tests/integrations has Keras itself."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from nethook.addresses.tree import Tree
from nethook.kinds.keras_layers import channels_last, hidden_layers, is_keras_class
from nethook.kinds.modules import unit_dim


@pytest.fixture
def keras(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What nethook knows of Keras; its classes are new in each test, as their answers are kept."""

    class Layer(nn.Module):
        def __init__(self, name: str, *below: nn.Module, weight: bool = True) -> None:
            super().__init__()
            self.name = name
            self._layers = list(below)
            if weight:
                self._torch_params = nn.ParameterDict({f"{name}/w": nn.Parameter(torch.ones(2))})

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self._layers:
                x = layer(x)
            return x * 2

    class InputLayer(Layer):
        pass

    library = ModuleType("keras")
    library.Layer = Layer  # type: ignore[attr-defined]
    library.layers = SimpleNamespace(InputLayer=InputLayer)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keras", library)
    return library


def test_layers_in_a_list_are_layers_of_the_model(keras: Any) -> None:
    layer, start = keras.Layer, keras.layers.InputLayer
    block = layer("block", layer("dense"), layer("dense"), weight=False)
    model = layer("model", start("input"), block, layer("head"))
    tree = Tree(model)
    assert tree.addresses == [
        "", "_torch_params", "block", "block.dense", "block.dense._torch_params", "block.dense_1",
        "block.dense_1._torch_params", "head", "head._torch_params",
    ]  # fmt: skip
    assert [site.address for site in tree.leaves()] == ["block.dense", "block.dense_1", "head"]


def test_what_is_an_attribute_keeps_its_name(keras: Any) -> None:
    model = keras.Layer("model")
    model.encoder = keras.Layer("dense_7")
    model.torch = nn.Linear(2, 2)
    model._layers = [model.encoder, keras.Layer("encoder")]
    assert list(hidden_layers(model)) == ["encoder_1"]  # `encoder` is another
    assert [site.address for site in Tree(model).leaves()] == ["encoder", "torch", "encoder_1"]


def test_a_sequential_has_its_layers_once(keras: Any) -> None:
    layers = [keras.Layer("dense"), keras.Layer("head")]
    model = keras.Layer("sequential", *layers, weight=False)
    model._functional = keras.Layer("functional", *layers)
    tree = Tree(model)
    assert [site.address for site in tree.leaves()] == ["dense", "head"]
    assert tree.other_names() == {}


def test_a_layer_inside_a_module_of_torch(keras: Any) -> None:
    inside = keras.Layer("model", keras.Layer("dense"))
    tree = Tree(nn.Sequential(nn.Linear(2, 2), inside))
    assert [site.address for site in tree.leaves()] == ["0", "1.dense"]
    assert [site.address for site in Tree(nn.Sequential(nn.Linear(2, 2))).leaves()] == ["0"]


def test_units_are_last_unless_a_layer_says_otherwise(keras: Any) -> None:
    layer = keras.Layer("conv")
    assert is_keras_class(type(layer))
    assert not is_keras_class(nn.Linear)
    assert channels_last(layer)
    assert unit_dim(layer, 4) == 3
    layer.data_format = "channels_first"
    assert unit_dim(layer, 4) == 1
    assert unit_dim(nn.ReLU(), 4) == 1
