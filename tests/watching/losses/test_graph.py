"""From a loss back to the outputs: summands, factors, marks."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.watching.losses.graph import (
    Factor,
    factor_of,
    find_output,
    follow,
    is_alike,
    is_leaf,
    mark_of,
    name_of,
    option,
    saved,
    shape_of,
    straight_behind,
    terms_of,
)
from nethook.watching.losses.marks import Marks, OutputMark


def output(shape: tuple[int, ...] = (4, 3)) -> torch.Tensor:
    out = nn.Linear(2, shape[-1])(torch.randn(*shape[:-1], 2))
    Marks().put(out.grad_fn, "G", ())
    return out


def test_a_node_says_its_name_shape_and_what_it_kept():
    x = torch.ones(4, 3, requires_grad=True)
    node = F.mse_loss(x, torch.zeros(4, 3)).grad_fn
    assert (name_of(node), shape_of(node)) == ("MseLoss", ())
    assert torch.equal(saved(node, "target"), torch.zeros(4, 3))
    assert saved(node, "nothing") is None
    assert option(node, "reduction") == 1
    assert is_leaf(node.next_functions[0][0])


def terms(function) -> list[tuple[str, float | None]]:
    found = terms_of(function(output()).grad_fn)
    return [(name_of(term.node), term.factor) for term in found]


Y, T = torch.tensor([0, 1, 2, 0]), torch.zeros(4, 3)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda out: F.mse_loss(out, T), [("MseLoss", 1.0)]),
        (lambda out: F.mse_loss(out, T) / 4, [("MseLoss", 0.25)]),
        (lambda out: -F.mse_loss(out, T) * 2, [("MseLoss", -2.0)]),
        (lambda out: F.mse_loss(out, T) - 3 * F.huber_loss(out, T),
         [("MseLoss", 1.0), ("HuberLoss", -3.0)]),
        (lambda out: torch.add(F.mse_loss(out, T), F.huber_loss(out, T), alpha=0.5),
         [("MseLoss", 1.0), ("HuberLoss", 0.5)]),
        (lambda out: 1 - F.mse_loss(out, T), [("MseLoss", -1.0)]),
        (lambda out: out.pow(2).mean(), [("Pow", 1.0)]),
        (lambda out: torch.stack([F.mse_loss(out, T), F.huber_loss(out, T)]).sum(),
         [("MseLoss", 1.0), ("HuberLoss", 1.0)]),
    ],
)  # fmt: skip
def test_summands_and_their_factors(function, expected):
    assert terms(function) == expected


def test_the_factor_of_a_loss_scaler_is_left_out():
    root = (F.mse_loss(output(), T) / 4 * torch.tensor(1024.0)).grad_fn
    [term] = terms_of(root, scaled=True)
    assert term.factor == 0.25
    assert terms_of(root)[0].factor == 256.0


def test_a_factor_for_each_element_is_not_one_number():
    [term] = terms_of((output() * torch.rand(4, 3)).relu().sum().grad_fn)
    assert name_of(term.node) == "Relu"
    [term] = terms_of((output().relu() * torch.rand(4, 3)).sum().grad_fn)
    assert term.factors == (Factor(None, tensor=True),)
    assert term.factor == 1.0
    assert term.reductions == ["sum"]


def test_the_way_to_the_output_of_a_model():
    out = output()
    [term] = terms_of(F.mse_loss(out.relu().tanh(), T).grad_fn)
    find_output(term)
    assert [name_of(node) for node in term.behind] == ["Tanh", "Relu", "Addmm"]
    assert term.mark == OutputMark("G", ())
    node = follow(F.mse_loss(out.relu().tanh(), T).grad_fn, (*term.steps, *term.behind_steps))
    assert node is out.grad_fn


def test_another_graph_is_not_followed():
    [term] = terms_of(F.mse_loss(output().relu(), T).grad_fn)
    find_output(term)
    steps = (*term.steps, *term.behind_steps)
    assert follow(F.mse_loss(output().tanh(), T).grad_fn, steps) is None


def test_a_loss_that_the_model_returns_itself_is_no_output():
    loss = F.mse_loss(output(), T)
    Marks().put(loss.grad_fn, "G", ("loss",))
    assert mark_of(loss.grad_fn) is None
    assert mark_of(output().grad_fn) == OutputMark("G", ())


def test_long_sums_end_somewhere():
    out = output()
    root = sum(F.mse_loss(out, T) for _ in range(100)).grad_fn
    assert len(terms_of(root)) < 20
    assert len(straight_behind(out.relu().tanh().sigmoid().grad_fn, 2)) == 2


@pytest.mark.parametrize(
    ("make", "factor"),
    [
        (lambda x: x * 3, Factor(3.0)),
        (lambda x: x / 4, Factor(0.25)),
        (lambda x: x / torch.tensor(8.0), Factor(0.125)),
        (lambda x: torch.ones(4, 3) * x, Factor(None, tensor=True)),
        (lambda x: torch.tensor(2.0) / x, None),
        (lambda x: x * x, None),
        (lambda x: x + 1, None),
    ],
)
def test_what_a_node_multiplies_by(make, factor):
    assert factor_of(make(output()).grad_fn) == factor


def test_each_compiled_graph_has_a_type_of_its_own_and_they_are_alike():
    def made() -> type:
        class CompiledFunction(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                return grad

        return CompiledFunction.apply(torch.ones(2, requires_grad=True)).sum().grad_fn

    first, second = made(), made()
    types = [type(node.next_functions[0][0]) for node in (first, second)]
    assert types[0] is not types[1]
    assert is_alike(*types)
    assert follow(second, ((0, types[0]),)) is second.next_functions[0][0]
    assert not is_alike(types[0], type(first))
    assert not is_alike(type(first), type(output().grad_fn))
