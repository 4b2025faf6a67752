"""The record of a loss from the call of torch's function for it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from nethook.watching.losses.calls import operands_of_call, returned_loss, samples_of_call
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


SOME = torch.tensor([0, -100, 2, -1])
ONE = torch.tensor(1.0)


@pytest.mark.parametrize(
    ("kind", "args", "kwargs", "samples", "summed"),
    [
        ("cross_entropy", (X, Y), {}, 4, False),
        ("cross_entropy", (X, SOME), {"ignore_index": -100}, 3, False),
        ("cross_entropy", (X, SOME, None, 2, -1), {}, 3, True),
        ("cross_entropy", (X, X.softmax(1)), {}, 4, False),
        ("cross_entropy", (X[0], Y[0]), {}, 1, False),
        ("nll", (X, Y), {"reduction": 2}, 4, True),
        ("mse", (X, X), {}, 4, False),
        ("mse", (ONE, ONE), {}, 1, False),
        ("ctc", (torch.randn(9, 2, 4), Y), {}, 2, False),
        ("triplet_margin", (X, X, X), {}, 4, False),
        ("mse", (1.0, 2.0), {}, None, False),
    ],
)
def test_samples_of_a_call(kind, args, kwargs, samples, summed):
    assert samples_of_call(kind, args, kwargs, ONE) == (samples, summed)


def test_the_mean_of_losses_that_were_not_reduced_is_over_all_of_them():
    losses = F.cross_entropy(X, Y, reduction="none")
    assert samples_of_call("cross_entropy", (X, Y, None, 0), {}, losses) == (4, False)


def test_classes_count_as_much_as_they_weigh():
    weight = torch.tensor([1.0, 10.0, 100.0])
    target = torch.tensor([0, 1, -100, 2])
    samples, _ = samples_of_call("cross_entropy", (X, target, weight), {}, ONE)
    assert samples == 111
    whole = F.cross_entropy(X, target, weight, reduction="sum")
    assert whole / samples == pytest.approx(F.cross_entropy(X, target, weight).item())


def test_the_loss_that_a_model_returns() -> None:
    loss = torch.tensor(2.0)
    assert returned_loss({"loss": loss, "logits": X}) is loss
    assert returned_loss(SimpleNamespace(loss=loss)) is loss
    none = (None, X, {"loss": None}, {"loss": X}, {"loss": 2.0}, (loss, X), SimpleNamespace())
    assert [returned_loss(output) for output in none] == [None] * len(none)
