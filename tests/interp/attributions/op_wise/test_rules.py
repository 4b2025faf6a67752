"""One operation at a time: completeness, closed forms, and what the middle and quotients give."""

import pytest
import torch
from torch.nn import functional as F

from nethook.interp.attributions.op_wise.rules import Rule, passed_back, ruled

GENERATOR = torch.Generator().manual_seed(0)
A, A0, B, B0 = torch.randn(4, 3, 4, generator=GENERATOR).double()
G = torch.randn(3, 4, generator=GENERATOR).double()


def back(kind, function, given, base, grads=G, nodes=12):
    return passed_back(Rule(kind, function, tuple(base), nodes), given, [grads])


def missing(function, given, base, grads, found):
    """How much of the change of the result is not in what was passed back."""
    change = ((function(*given) - function(*base)) * grads).sum()
    return float(
        sum(((a - b) * g).sum() for a, b, g in zip(given, base, found, strict=True)) - change
    )


@pytest.mark.parametrize("function", [torch.relu, F.gelu, torch.exp, torch.tanh, torch.square])
def test_quotients_are_complete(function):
    found = back("elementwise", function, [A], [A0])
    assert abs(missing(function, [A], [A0], G, found)) < 1e-14
    assert torch.allclose(found[0], G * (function(A) - function(A0)) / (A - A0))


def test_the_slope_where_there_is_no_difference():
    (found,) = back("elementwise", F.gelu, [A], [A.clone()])
    leaf = A.clone().requires_grad_()
    assert torch.allclose(found, torch.autograd.grad(F.gelu(leaf), leaf, G)[0])
    near = A + 1e-9
    (found,) = back("elementwise", torch.exp, [near], [A])
    assert torch.allclose(found, G * A.exp(), atol=1e-6)


def test_products_by_the_middle():
    found = back("product", torch.mul, [A, B], [A0, B0])
    assert torch.allclose(found[0], G * (B + B0) / 2)
    assert torch.allclose(found[1], G * (A + A0) / 2)
    assert abs(missing(torch.mul, [A, B], [A0, B0], G, found)) < 1e-13
    outer = lambda a, b: a @ b.T  # noqa: E731
    grads = G[:, :3]
    found = back("product", outer, [A, B], [A0, B0], grads)
    assert abs(missing(outer, [A, B], [A0, B0], grads, found)) < 1e-13


@pytest.mark.parametrize(
    "function",
    [
        lambda a: F.softmax(a, -1),
        lambda a: F.layer_norm(a, (4,)),
        lambda a: F.log_softmax(a, 0),
    ],
)
def test_nodes_converge(function):
    errors = [
        abs(missing(function, [A], [A0], G, back("nodes", function, [A], [A0], nodes=nodes)))
        for nodes in (4, 12, 32)
    ]
    assert errors[2] < 1e-5
    assert errors[2] <= errors[0]


def test_attention_with_three_inputs():
    q, k, v, q0, k0, v0 = torch.randn(6, 1, 2, 5, 4, generator=GENERATOR).double()
    grads = torch.randn(1, 2, 5, 4, generator=GENERATOR).double()
    function = F.scaled_dot_product_attention
    found = back("nodes", function, [q, k, v], [q0, k0, v0], grads, nodes=24)
    assert abs(missing(function, [q, k, v], [q0, k0, v0], grads, found)) < 1e-5


def test_the_result_is_the_operations_own():
    leaf = A.clone().requires_grad_()
    rule = Rule(
        "nodes", lambda a: torch.max(a, 1), (A0,), 4
    )  # values, and indices without gradient
    values, indices = ruled(rule, [leaf])
    assert torch.equal(values, A.max(1).values)
    assert torch.equal(indices, A.max(1).indices)
    assert values.requires_grad
    assert not indices.requires_grad
    (found,) = torch.autograd.grad(values.sum(), leaf)
    assert torch.allclose(found.sum(1), torch.ones(3).double())


def test_an_operation_in_place_writes_to_a_copy():
    leaf = A.clone().requires_grad_()
    given = leaf * 1.0
    out = ruled(Rule("elementwise", lambda a: a.relu_(), (A0,), 4), [given])
    assert torch.equal(given, A)
    assert torch.equal(out, A.relu())
    given.mul_(5.0)  # what the model writes later does not matter
    (found,) = torch.autograd.grad(out, leaf, G)
    assert torch.allclose(found, G * (A.relu() - A0.relu()) / (A - A0))
