"""The part that a parameter plays."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.init.dataflow.recorder import record
from nethook.init.dataflow.roles import Use, uses_of


class Holds(nn.Module):
    """One parameter `w`, used by a function."""

    def __init__(self, shape: tuple[int, ...], call: Any) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(shape))
        self.call = call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.call(x, self.w)


def use(shape: tuple[int, ...], call: Any, x: torch.Tensor | None = None) -> Use:
    x = torch.randn(5, 6) if x is None else x
    (only,) = uses_of(record(Holds(shape, call), nethook.inputs(x)))
    return only


@pytest.mark.parametrize(
    ("shape", "call", "fans"),
    [
        ((3, 6), F.linear, (6.0, 3.0)),
        ((6, 3), lambda x, w: x @ w, (6.0, 3.0)),
        ((3, 6), lambda x, w: x @ w.T, (6.0, 3.0)),
        ((3, 5), lambda x, w: w @ x, (5.0, 3.0)),
        ((6, 3), lambda x, w: torch.addmm(torch.zeros(3), x, w), (6.0, 3.0)),
        ((6, 3), lambda x, w: torch.einsum("ni,io->no", x, w), (6.0, 3.0)),
    ],
)
def test_products(shape: tuple[int, ...], call: Any, fans: tuple[float, float]) -> None:
    found = use(shape, call)
    assert found.role == "weight"
    assert found.fans == fans
    assert not found.why_not


@pytest.mark.parametrize(
    ("shape", "call", "role", "left_alone"),
    [
        ((6,), lambda x, w: x + w, "bias", False),
        ((5, 6), lambda x, w: x + w, "learned offset", True),
        ((6,), lambda x, w: x * w, "factor", True),
        ((1, 6), lambda x, w: torch.cat([w, x]), "learned token", True),
        ((6,), lambda x, w: F.layer_norm(x, (6,), w), "norm scale", False),
        ((1,), F.prelu, "activation", True),
        ((6,), lambda x, w: torch.maximum(x, w), "unknown", True),
    ],
)
def test_vectors(shape: tuple[int, ...], call: Any, role: str, left_alone: bool) -> None:
    found = use(shape, call)
    assert found.role == role
    assert found.fans is None
    assert bool(found.why_not) is left_alone


@pytest.mark.parametrize(
    ("shape", "call", "words"),
    [
        ((4, 6), lambda x, w: F.linear(x, w[:2]), "only a part of it is used"),
        ((3, 6), lambda x, w: F.linear(x, w / w.norm()), "as a parametrisation does"),
        ((2, 6, 3), lambda x, w: x @ w, "a weight of 3 dimensions is not understood"),
        ((6, 3), lambda x, w: torch.einsum("...i,io", x, w), "its einsum is not understood"),
    ],
)
def test_weights_that_are_left_alone(shape: tuple[int, ...], call: Any, words: str) -> None:
    assert words in use(shape, call).why_not


def test_lookups() -> None:
    found = use((20, 4), lambda x, w: F.embedding(x, w), torch.randint(0, 20, (5, 3)))
    assert found.role == "embedding"
    assert found.fans == (1.0, 4.0)


@pytest.mark.parametrize(
    ("layer", "fans"),
    [
        (nn.Conv1d(4, 8, 3, groups=2, bias=False), (6.0, 12.0)),
        (nn.Conv1d(4, 8, 4, stride=2, bias=False), (16.0, 16.0)),
        (nn.ConvTranspose1d(4, 8, 4, stride=2, bias=False), (8.0, 32.0)),
    ],
)
def test_convolutions(layer: nn.Module, fans: tuple[float, float]) -> None:
    (found,) = uses_of(record(layer, nethook.inputs(torch.randn(2, 4, 12))))
    assert found.fans == fans


def test_recurrent_layers_by_their_names() -> None:
    flow = record(nn.LSTM(4, 8), nethook.inputs(torch.randn(3, 2, 4)))
    roles = {flow.parameters[found.param].address: found.role for found in uses_of(flow)}
    assert roles == {
        "weight_ih_l0": "recurrent input",
        "weight_hh_l0": "recurrent hidden",
        "bias_ih_l0": "recurrent bias ih",
        "bias_hh_l0": "recurrent bias hh",
    }
