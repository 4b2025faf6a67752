"""Which of several signs of NaN is the first, and what kind of case it is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.runs.names import GRADS, OUTPUTS, PARAM_GRADS, PARAMS
from nethook.watching.flight.culprit import Suspect, look_at, pin
from nethook.watching.flight.flag import Flag
from nethook.watching.flight.loss import LossCause
from nethook.watching.flight.ranges import range_of

NAN, INF = float("nan"), float("inf")


def suspect(address: str = "fc", quantity: str = OUTPUTS, **more) -> Suspect:
    return Suspect(address, quantity, 5, value=range_of(torch.tensor([NAN])), **more)


def test_a_flag_is_looked_at_with_its_inputs_and_parameters():
    module = nn.Linear(2, 1)
    x = torch.ones(1, 2)
    seen = look_at(Flag("fc", OUTPUTS, 3, "train", module, (x,), torch.tensor([NAN])), None, set())
    assert (seen.inputs_finite, seen.parameters, seen.kind) == (True, [], "Linear")
    assert (seen.value.nan, seen.step) == (1, 3)
    with torch.no_grad():
        module.bias.fill_(INF)
    seen = look_at(Flag("fc", OUTPUTS, 3, "train", module, (x,), torch.tensor([INF])), None, set())
    assert seen.parameters == ["bias"]


def test_of_harmless_signs_the_inputs_are_not_looked_at():
    flag = Flag("mask", OUTPUTS, 3, "train", None, (torch.ones(2),), torch.tensor([-INF]))
    fresh = look_at(flag, None, set())
    assert fresh.inputs
    assert look_at(flag, None, {fresh.key}).inputs == []


def test_the_same_site_with_nan_instead_of_infinities_is_another_sign():
    keys = {
        look_at(Flag("a", OUTPUTS, 0, "train", value=torch.tensor([number])), None, set()).key
        for number in (NAN, INF, -INF)
    }
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("suspects", "loss", "case", "address"),
    [
        ([suspect(inputs_finite=True)], None, "forward", "fc"),
        ([suspect(parameters=["weight"])], None, "parameters", "fc"),
        ([suspect("a", GRADS), suspect("a.weight", PARAM_GRADS)], None, "backward", "a"),
        ([suspect("a.weight", PARAM_GRADS)], None, "backward", "a.weight"),
        ([suspect("a.weight", PARAMS)], None, "optimizer", "a.weight"),
        (
            [suspect(inputs_finite=True)],
            LossCause(prediction_finite=True, chain=["Log"]),
            "loss",
            "",
        ),
        ([suspect("", "loss")], LossCause(prediction_finite=False), "forward", ""),
        ([suspect("", "loss")], LossCause(target_finite=False), "data", ""),
        ([suspect("", "loss")], LossCause(), "loss", ""),
    ],
)
def test_the_case(suspects, loss, case, address):
    pinned = pin(suspects, loss, torch.ones(2))
    assert (pinned.case, pinned.address, pinned.step) == (case, address, 5)
    assert len(pinned.signs) == len(suspects)


def test_parameters_that_were_healthy_before_are_the_optimizers_doing():
    pinned = pin([suspect(parameters=["weight", "bias"])], None, None, healthy=True)
    assert (pinned.case, pinned.address, pinned.step) == ("optimizer", "fc.weight", 4)
    assert "fc.weight, fc.bias are not finite" in pinned.message


def test_nan_in_the_batch_is_the_data_s_doing():
    pinned = pin([suspect(inputs_finite=False)], None, {"x": torch.tensor([1.0, NAN])})
    assert pinned.case == "data"
    assert pinned.message == "the batch has NaN, which 'fc' is the first to meet"


def test_between_two_sites_the_one_around_is_named():
    given = [range_of(torch.tensor([INF]))]
    pinned = pin([suspect("block.fc", inputs_finite=False, inputs=given)], None, torch.ones(1))
    assert (pinned.case, pinned.address, pinned.before) == ("forward", "block", "block.fc")
    assert "an operation in 'block' made +Inf" in pinned.message


def test_as_plain_data():
    data = pin([suspect(inputs_finite=True, reason="log of 0")] * 20, None, None).to_dict()
    assert len(data["signs"]) == 8
    assert (data["case"], data["site"], data["reason"]) == ("forward", "fc", "log of 0")
