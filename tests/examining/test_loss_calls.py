"""Every loss function of torch is known, with its prediction and target."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch.nn import functional as F

from nethook.examining.loss_calls import KINDS, arguments_of, is_loss


def test_every_loss_of_torch_is_known():
    named = {
        function
        for name, function in vars(F).items()
        if inspect.isfunction(function) and name.endswith("_loss") and not name.startswith("_")
    }
    missing = {function.__name__ for function in named if function not in KINDS}
    assert missing <= {"linear_cross_entropy_loss"}, missing


@pytest.mark.parametrize("function", KINDS, ids=lambda function: function.__name__)
def test_prediction_and_target_have_names(function):
    names = list(inspect.signature(function).parameters)
    values = {name: object() for name in names[:3]}
    told = arguments_of(function, (), values)
    assert told.prediction is values[names[0]]
    if "target" in values or "targets" in values:
        assert told.target is values.get("target", values.get("targets"))


def test_options_are_plain_data():
    weight = torch.ones(3)
    told = arguments_of(
        F.cross_entropy, (1, 2), {"weight": weight, "ignore_index": 0, "reduction": "sum"}
    )
    assert told.options == {"weight": True, "ignore_index": 0, "reduction": "sum"}
    assert (told.prediction, told.target) == (1, 2)


def test_what_is_no_loss():
    assert not is_loss(torch.add)
    assert not is_loss([])  # type: ignore[arg-type]
