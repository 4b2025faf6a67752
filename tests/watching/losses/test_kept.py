"""What is kept of a step until its backward pass, and what it tells of hand-written losses."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.watching.losses.kept import MOST, Kept
from nethook.watching.losses.kinds import made_of, operands_of
from nethook.watching.losses.record import analyse
from tests.watching.losses.outputs import output


def kept_of(*outputs: torch.Tensor) -> Kept:
    kept = Kept()
    for each in outputs:
        kept.returned(each)
    return kept


def test_an_output_is_known_by_its_node_and_in_another_shape():
    out = output((4, 3))
    kept = kept_of(out)
    assert torch.equal(kept.output(out.grad_fn), out)
    assert torch.equal(kept.output(out.view(12).grad_fn), out.view(12))
    assert torch.equal(kept.output(out.unsqueeze(1).grad_fn), out.unsqueeze(1))
    assert torch.equal(kept.output(out[:, 1].grad_fn), out[:, 1])
    assert torch.equal(kept.output(out[..., -1].grad_fn), out[..., -1])
    assert torch.equal(kept.output(out.view(2, 6).select(0, 1).grad_fn), out.view(2, 6)[1])
    assert kept.output(out.t().grad_fn) is None  # in another order
    assert kept.output((out + 1).grad_fn) is None
    assert not kept.output(out.grad_fn).requires_grad


def test_what_was_written_since_is_not_told():
    out = output()
    kept = kept_of(out)
    node = out.grad_fn
    out.detach().add_(1)
    assert kept.output(node) is None


def test_nodes_of_an_earlier_step_are_forgotten():
    first, second = output(), output()
    kept = kept_of(first)
    kept.given((torch.ones(2), {"a": torch.ones(3)}), {"b": torch.ones(4)})
    assert [len(tensor) for tensor in kept.inputs] == [2, 3, 4]
    kept.clear()
    assert not kept.inputs
    kept.returned(second)
    assert kept.output(first.grad_fn) is None
    assert kept.output(second.grad_fn) is not None


def test_only_a_few_are_kept():
    outputs = [output() for _ in range(MOST + 2)]
    kept = kept_of(*outputs)
    assert kept.output(outputs[0].grad_fn) is not None
    assert kept.output(outputs[-1].grad_fn) is None


TARGETS = {"numbers": torch.randn(4, 3), "classes": torch.tensor([[0.0, 2, 1]] * 4)}
LOSSES = {
    "square": lambda out, y: ((out - y) ** 2).mean(),
    "pow": lambda out, y: (out - y).pow(2).sum(),
    "the other way round": lambda out, y: ((y - out) ** 2).mean(),
    "absolute": lambda out, y: (out - y).abs().mean(),
    "product": lambda out, y: ((out - y) * (out - y)).mean(),
    "l1": nn.functional.l1_loss,
    "flat": lambda out, y: ((out.view(-1) - y.view(-1)) ** 2).mean(),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_target_of_a_loss_by_hand(loss, target):
    out, wanted = output(), TARGETS[target]
    analysis = analyse(LOSSES[loss](out, wanted).grad_fn)
    operands = operands_of(analysis.main, analysis.made, kept_of(out))
    assert torch.equal(operands.prediction.flatten(), out.detach().flatten())
    assert torch.allclose(operands.target.flatten(), wanted.flatten(), atol=1e-6)
    if target == "classes":
        assert torch.equal(operands.target.flatten(), wanted.flatten())


@pytest.mark.parametrize("turned", [False, True])
def test_the_target_of_a_difference_that_was_broadcast(turned):
    out, wanted = output((4, 1)), torch.randn(4)
    loss = (out.T - wanted[:, None]) if turned else (wanted - out)
    analysis = analyse((loss**2).mean().grad_fn)
    operands = operands_of(analysis.main, made_of(analysis.main), kept_of(out))
    if turned:  # in another order: only the shapes are known
        assert operands.target is None
        assert operands.result_shape == (4, 4)
        return
    assert torch.allclose(operands.target, wanted, atol=1e-6)
    assert operands.prediction_shape == (4, 1)
    assert operands.target_shape == (4,)
    assert operands.result_shape == (4, 4)


def test_a_table_of_targets_stays_one():
    """Quantiles of a distribution: as many targets for each answer."""
    out, wanted = output((4, 1)), torch.randn(4, 5)
    analysis = analyse(((out - wanted) ** 2).mean().grad_fn)
    operands = operands_of(analysis.main, made_of(analysis.main), kept_of(out))
    assert torch.allclose(operands.target, wanted, atol=1e-6)
    assert operands.target_shape == (4, 5)


def test_pairs_of_points_are_left_alone():
    out, other = output((4, 3)), torch.randn(5, 3)
    analysis = analyse(((out[:, None] - other[None]) ** 2).mean().grad_fn)
    operands = operands_of(analysis.main, made_of(analysis.main), kept_of(out))
    assert operands.target is None
