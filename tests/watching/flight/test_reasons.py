"""Why an operation is not finite: each rule with numbers that need it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.watching.flight.loss import LossKeeper, cause_of, compute_again, keep_loss
from nethook.watching.flight.ranges import is_finite, range_of, ranges_of
from nethook.watching.flight.reasons import backward_reason, forward_reason
from nethook.watching.losses.marks import OUTPUT_MARK, OutputMark

T = torch.tensor
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("function", "operands", "said"),
    [
        (torch.log, (T([0.0, 1.0]),), "log of 0: 1 of 2 elements are 0"),
        (torch.log, (T([-1.0, 1.0]),), "log of a negative number: its operand goes down to -1"),
        (torch.log1p, (T([-1.0]),), "log1p of −1"),
        (torch.div, (T([0.0, 1.0]), T([0.0, 1.0])), "0/0: 1 element are 0 in both operands"),
        (torch.div, (T([1.0, 1.0]), T([0.0, 0.0])), "division by 0: 2 elements"),
        (torch.div, (T([1.0]), 0.0), "division by 0"),
        (torch.reciprocal, (T([0.0]),), "division by 0"),
        (torch.sqrt, (T([-2.0]),), "root of a negative number"),
        (torch.rsqrt, (T([0.0]),), "division by 0"),
        (torch.pow, (T([0.0]), -1.0), "0 to a negative power"),
        (torch.pow, (T([-1.0]), 0.5), "a power that is not whole"),
        (torch.exp, (T([100.0]),), "exp of 100 overflows float32"),
        (torch.exp, (T([12.0], dtype=torch.float16),), "exp of 12 overflows float16"),
        (torch.softmax, (T([[-INF, -INF]]), 1), "all of it is masked"),
        (torch.mean, (torch.zeros(0),), "mean of no elements"),
        (torch.std, (T([1.0]),), "deviation of a single element"),
        (torch.acos, (T([2.0]),), "outside of −1 … 1"),
        (torch.sub, (T([INF]), T([INF])), "∞ − ∞"),
        (torch.mul, (T([0.0]), T([INF])), "0 · ∞"),
        (torch.add, (T([3e38]), T([3e38])), "overflow of float32"),
        (torch.matmul, (torch.full((2, 2), 3e4).half(),) * 2, "overflow of float16"),
        (torch.add, (T([NAN]), T([1.0])), "it was given NaN"),
        (torch.add, (T([INF]), T([1.0])), "it was given infinities"),
        (torch.matmul, (T([[INF, -INF]]), T([[1.0], [1.0]])), "infinite operands"),
    ],
)
@pytest.mark.filterwarnings("ignore:std")
def test_forward(function, operands, said):
    result = function(*operands)
    assert not is_finite(result)
    assert said in forward_reason(function.__name__, operands, result)


def test_an_infinity_that_the_operands_are_too_small_for():
    """Of a whole network: its inputs do not say what has made it."""
    said = forward_reason("Net", (torch.full((40, 8), 2.5),), T([INF]))
    assert "or a division by 0 or the log of 0 inside of it; its operands reach 2.5" in said
    assert "division" not in forward_reason("Net", (torch.full((40, 8), 2.5e19),), T([INF]))


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (torch.sqrt, [0.0, 1.0]),
        (torch.log, [0.0]),
        (torch.rsqrt, [0.0]),
        (torch.acos, [1.0]),
        (lambda x: x.pow(0.5), [0.0]),
    ],
)
def test_backward(function, x):
    leaf = T(x, requires_grad=True)
    function(leaf).sum().backward()
    name = function.__name__.replace("<lambda>", "pow")
    assert "is infinite" in backward_reason(name, (leaf.detach(), 0.5), (torch.ones(1),))
    assert not is_finite(leaf.grad)


def test_an_overflow_in_backward():
    said = backward_reason("linear", (torch.ones(1),), (torch.ones(1).half(),))
    assert (
        said
        == "overflow of float16, whose largest number is 65504 or infinite derivative of linear"
    )


# -- looking ---------------------------------------------------------------------------------------


def test_a_range():
    look = range_of(T([1.0, NAN, INF, -INF, 0.0, -2.0]), "x")
    assert (look.min, look.max) == (-2.0, 1.0)
    assert (look.nan, look.posinf, look.neginf, look.zeros) == (1, 1, 1, 1)
    assert str(look) == "x float32[6], from -2 to 1, 1 zero, 1 NaN, 1 +Inf, 1 −Inf"
    assert look.to_dict()["shape"] == [6]


def test_what_counts_as_finite():
    assert is_finite({"a": [torch.ones(2), torch.arange(3), None, "text"]})
    assert not is_finite({"a": [torch.ones(2), T([NAN])]})
    assert is_finite(torch.ones(2).to_sparse())  # it cannot be read
    assert is_finite(torch.zeros(0))
    assert [each.name for each in ranges_of({"a": torch.ones(1)}, "inputs")] == ['inputs["a"]']


# -- losses ----------------------------------------------------------------------------------------


def output(*values: float) -> torch.Tensor:
    made = T([values], requires_grad=True) * 1
    made.grad_fn.metadata[OUTPUT_MARK] = OutputMark("")
    return made


@pytest.mark.parametrize(
    ("loss", "operation", "reason"),
    [
        (lambda: -torch.log(output(0.0, 1.0)).sum(), "Log", "log of 0"),
        (lambda: (output(1.0, 1.0) / output(0.0, 1.0)).sum(), "Div", "division by 0"),
        (lambda: torch.exp(output(1000.0, 1.0)).sum(), "Exp", "exp overflows"),
        (lambda: torch.sqrt(output(-1.0, 1.0)).sum(), "Sqrt", "root of a negative number"),
        (lambda: F.nll_loss(torch.log(output(0.0, 1.0)), T([0])), "Log", "log of 0"),
        (lambda: output(0.0, 1.0).pow(-1.0).sum(), "Pow", "0 to a negative power"),
    ],
)
def test_what_made_a_loss_infinite(loss, operation, reason):
    root = loss()
    assert not is_finite(root)
    found = cause_of(root.grad_fn)
    assert found.operation == operation
    assert reason in found.reason
    assert found.ranges
    assert found.prediction_finite is not False


def test_a_prediction_or_a_target_that_was_not_finite_before():
    found = cause_of(F.mse_loss(output(NAN, 1.0), torch.ones(1, 2)).grad_fn)
    assert (found.prediction_finite, found.target_finite) == (False, True)
    found = cause_of(F.mse_loss(output(1.0, 1.0), T([[NAN, 1.0]])).grad_fn)
    assert (found.prediction_finite, found.target_finite) == (True, False)
    found = cause_of(F.cross_entropy(output(NAN, 1.0), T([0])).grad_fn)
    assert found.prediction_finite is False
    found = cause_of(F.cross_entropy(output(-INF, 1.0), T([0])).grad_fn)
    assert found.prediction_finite is None  # a mask, or a probability of 0


LOSSES = [
    lambda o: F.mse_loss(o, torch.rand(8, 3)),
    lambda o: F.mse_loss(o, torch.rand(8, 3), reduction="sum") / 4,
    lambda o: 0.5 * F.huber_loss(o, torch.rand(8, 3)),
    lambda o: F.cross_entropy(o, torch.randint(0, 3, (8,))),
    lambda o: F.cross_entropy(o, torch.randint(0, 3, (8,)), weight=torch.rand(3)),
    lambda o: F.nll_loss(o, torch.randint(0, 3, (8,))),
    lambda o: F.binary_cross_entropy_with_logits(o, torch.rand(8, 3)),
    lambda o: F.soft_margin_loss(o, torch.ones(8, 3)),
]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_is_computed_again(loss):
    torch.manual_seed(0)
    made = nn.Linear(4, 3)(torch.randn(8, 4))
    made.grad_fn.metadata[OUTPUT_MARK] = OutputMark("")
    root = loss(made)
    kept = keep_loss([root])
    assert torch.allclose(compute_again(kept, made), root)
    keeper = LossKeeper()
    for _ in range(2):  # the second time from what is known
        again = keeper.keep([root])
        assert torch.allclose(compute_again(again, made), root)


@pytest.mark.parametrize(
    "loss",
    [
        lambda o: o.exp().sum(),
        lambda o: F.mse_loss(o.relu(), torch.rand(8, 3)),
        lambda o: F.mse_loss(o, torch.rand(8, 3)) + F.l1_loss(o, torch.rand(8, 3)),
        lambda o: F.cross_entropy(o.exp(), torch.randint(0, 3, (8,))),
    ],
)
def test_what_cannot_be_computed_again_is_not_kept(loss):
    made = nn.Linear(4, 3)(torch.randn(8, 4))
    made.grad_fn.metadata[OUTPUT_MARK] = OutputMark("")
    assert keep_loss([loss(made)]) == {}
    assert LossKeeper().keep([loss(made)]) == {}
