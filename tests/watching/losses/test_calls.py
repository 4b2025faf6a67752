"""The record of a loss from the call of torch's function for it."""

from __future__ import annotations

import pytest
import torch

from nethook.watching.losses.calls import operands_of_call
from nethook.watching.losses.kinds import LOG_PROBABILITIES, LOGITS, PROBABILITIES, VALUES

X, Y = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])


@pytest.mark.parametrize(
    ("kind", "space"),
    [
        ("cross_entropy", LOGITS),
        ("nll", LOG_PROBABILITIES),
        ("bce", PROBABILITIES),
        ("mse", VALUES),
    ],
)
def test_what_the_prediction_is(kind, space):
    data, operands = operands_of_call(kind, (X, Y), {})
    assert operands.space == space
    assert (data["kind"], data["reduction"], data["by_hand"]) == (kind, "mean", False)


def test_options_by_position_and_by_name():
    # After prediction and target: weight, reduction, ignored class, smoothing.
    data, operands = operands_of_call("cross_entropy", (X, Y, torch.ones(3), 2, -1, 0.1), {})
    assert data["reduction"] == "sum"
    assert data["options"] == {"ignore_index": -1, "label_smoothing": 0.1, "weight": True}
    assert (operands.ignore, operands.classes) == (-1, 1)
    named, _ = operands_of_call("smooth_l1", (X, X), {"reduction": 0, "beta": 0.5})
    assert (named["reduction"], named["options"]) == ("none", {"beta": 0.5})


def test_a_reduction_that_torch_does_not_have_is_unknown():
    assert operands_of_call("mse", (X, X), {"reduction": 7})[0]["reduction"] is None


def test_shapes_are_those_before_broadcasting():
    _, operands = operands_of_call("mse", (X, torch.ones(4, 1).expand(4, 3)), {})
    assert operands.target_shape == (4, 1)
    assert operands.result_shape == (4, 3)


def test_a_loss_of_several_predictions_has_no_target():
    _, operands = operands_of_call("triplet_margin", (X, X, X), {})
    assert operands.target is None
    assert operands.prediction is not None


def test_without_tensors_there_is_nothing():
    _, operands = operands_of_call("mse", (1.0, 2.0), {})
    assert (operands.prediction, operands.target) == (None, None)


def test_the_graph_is_not_held():
    x = X.clone().requires_grad_() * 2
    _, operands = operands_of_call("mse", (x, X), {})
    assert operands.prediction.grad_fn is None


def test_one_sample_has_its_classes_first():
    _, operands = operands_of_call("cross_entropy", (X[0], Y[0]), {})
    assert operands.classes == 0
