"""Filling a weight."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.errors import InitError
from nethook.init.dataflow.fans import Layout, layer_weights
from nethook.init.plans.sampling import DISTRIBUTIONS, draw, fill_, why_not_fillable


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_distribution_has_the_std_that_was_asked_for(distribution):
    torch.manual_seed(0)
    layout = layer_weights(nn.Conv2d(64, 64, 3))[0].layout
    made = draw((64, 64, 3, 3), distribution, 0.3, layout)
    rms = float(made.square().mean().sqrt())
    assert rms == pytest.approx(0.3, rel=0.02)
    assert not draw((64, 64, 3, 3), distribution, 0.0, layout).any()


@pytest.mark.parametrize("shape", [(6, 10), (10, 6), (8, 8)])
def test_orthogonal_rows_or_columns(shape):
    made = draw(shape, "orthogonal", 1.0, Layout("linear"), dtype=torch.float64)
    few, many = sorted(shape)
    product = made @ made.T if shape[0] <= shape[1] else made.T @ made
    assert torch.allclose(product, many * torch.eye(few, dtype=torch.float64))


def test_blocks_are_orthogonal_by_themselves():
    made = draw((24, 8), "orthogonal", 1.0, Layout("linear", blocks=3))
    for block in made.chunk(3):
        assert torch.allclose(block @ block.T, 8 * torch.eye(8), atol=1e-4)


def test_signs_of_an_orthogonal_matrix_are_evenly_spread():
    generator = torch.Generator().manual_seed(0)
    first = [draw((2, 2), "orthogonal", 1.0, Layout("linear"), generator)[0, 0] for _ in range(400)]
    assert abs(float(torch.stack(first).mean())) < 0.2  # LAPACK's alone are all of one sign


def test_truncated_values_stay_within_two_standard_deviations():
    made = draw((1000, 100), "truncated_normal", 0.5, Layout("linear"))
    assert float(made.abs().max()) <= 2 * 0.5 / 0.8796
    assert float(made.std()) == pytest.approx(0.5, rel=0.01)


def test_the_same_seed_gives_the_same_weights_in_every_type():
    def made(dtype):
        generator = torch.Generator().manual_seed(3)
        return draw((4, 4), "normal", 1.0, Layout("linear"), generator, dtype=dtype)

    assert torch.equal(made(torch.bfloat16), made(torch.float32).bfloat16())


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.empty(2, device="meta"), "to_empty"),
        (torch.ones(2, dtype=torch.int64), "of type int64"),
        (nn.UninitializedParameter(), "its shape is not known"),
    ],
    ids=["meta", "whole", "lazy"],
)
def test_what_cannot_be_filled(tensor, words):
    assert words in why_not_fillable(tensor)
    with pytest.raises(InitError, match=f"'w' cannot be initialised: .*{words}"):
        fill_(tensor, torch.zeros(2), "w")


def test_a_parameter_is_written_in_place():
    parameter = nn.Parameter(torch.zeros(3))
    fill_(parameter, torch.arange(3.0), "w")
    assert parameter.tolist() == [0.0, 1.0, 2.0]
    assert parameter.grad_fn is None
