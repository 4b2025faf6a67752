"""Which rule an operation gets."""

import pytest
import torch

from nethook.interp.attributions.op_wise.tables import ELEMENTWISE, LINEAR, PRODUCTS, rule_of

X = torch.randn(2, 3, requires_grad=True)
C = torch.randn(2, 3)


@pytest.mark.parametrize(
    ("name", "args", "rule"),
    [
        ("add", (X, X), "linear"),
        ("cat", ([X, C],), "linear"),
        ("mul", (X, C), "linear"),
        ("mul", (X, X), "product"),
        ("linear", (X, C, None), "linear"),
        ("matmul", (X, X), "product"),
        ("div", (X, C), "linear"),
        ("div", (C, X), "nodes"),
        ("div", (X, X), "nodes"),
        ("relu", (X,), "elementwise"),
        ("pow", (X, 2), "elementwise"),
        ("pow", (X, X), "nodes"),
        ("max_pool2d", (X, 2), "pool"),
        ("softmax", (X, -1), "nodes"),
        ("scaled_dot_product_attention", (X, X, X), "nodes"),
        ("something_new", (X,), "nodes"),
    ],
)
def test_rules(name, args, rule):
    assert rule_of(name, args, {}) == rule


def test_the_lists_do_not_overlap():
    assert not LINEAR & PRODUCTS
    assert not LINEAR & ELEMENTWISE
    assert not PRODUCTS & ELEMENTWISE


@pytest.mark.parametrize("name", sorted(name for name in ELEMENTWISE if hasattr(torch, name)))
def test_each_element_is_by_itself(name):
    function = getattr(torch, name)
    x = (torch.rand(4).double() * 0.8 + 0.1).requires_grad_()
    options = {
        "clamp": {"min": 0.3}, "clip": {"min": 0.3}, "clamp_max": {"max": 0.3},
        "clamp_min": {"min": 0.3}, "pow": {"exponent": 3},
        "threshold": {"threshold": 0.3, "value": 0},
        "prelu": {"weight": torch.full((1,), 0.2).double()}, "xlogy": {"other": 2.0},
    }.get(name, {})  # fmt: skip
    if name == "acosh":
        x = (x.detach() + 1).requires_grad_()
    if name in ("rpow", "rdiv"):
        pytest.skip("no function of torch, only a method")
    jacobian = torch.autograd.functional.jacobian(lambda t: function(t, **options), x)
    off = jacobian - torch.diag(jacobian.diagonal())
    assert not off.any()
