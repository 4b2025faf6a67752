"""Every odd model of the zoo can be planned and verified, and is left as it was."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import InitError
from tests.zoo import EXHIBITS, Exhibit
from tests.zoo.exhibit import Given
from tests.zoo.marks import exhibits_that

# They change their own parameters or modules when they are called.
CHANGE_THEMSELVES = {
    "child_replaced", "parameters_assigned", "training_steps", "closure_steps", "state_dict_hooks",
    "accumulation", "global_backward_hooks", "inner_backward", "child_added",
}  # fmt: skip
LAZY = {"lazy_linear", "lazy_conv"}
RANDOM = {"all_random_sources", "own_generator"}  # from sources that torch does not know


class Called(nn.Module):
    """An exhibit as a model without inputs: it makes its own."""

    def __init__(self, exhibit: Exhibit) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.model = exhibit.build().train(exhibit.train)
        self.exhibit = exhibit

    def forward(self) -> object:
        return self.exhibit.call(self.model, Given())


def bits(model: nn.Module) -> list[torch.Tensor]:
    state = [*model.parameters(), *model.buffers()]
    return [each.detach().clone() for each in state]


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(
        p.is_meta or torch.equal(torch.nan_to_num(p), torch.nan_to_num(q))
        for p, q in zip(a, b, strict=True)
    )


@exhibits_that(lambda each: each.name not in CHANGE_THEMSELVES | LAZY)
def test_planning_and_verifying_change_nothing(exhibit: Exhibit) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the exhibits
        model = Called(exhibit)
        before = bits(model)
        plan = nethook.init.plan(model, ())
        report = nethook.init.verify(model, ())
        assert same(bits(model), before)
        assert not any(info.ours for info in nethook.audit(model))
    # More where modules claim to be equal, of which torch lists one.
    assert len(plan) >= len(list(model.parameters()))
    assert repr(plan)
    assert repr(report)


@exhibits_that(
    lambda each: each.name not in CHANGE_THEMSELVES | LAZY | RANDOM | {"meta_device", "wide"}
)
def test_calibrating_twice_is_calibrating_once(exhibit: Exhibit) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Called(exhibit)
        plan = nethook.init.plan(model, ())
        nethook.init.calibrate_(model, (), plan=plan)
        before = bits(model)
        assert nethook.init.calibrate_(model, (), plan=plan).largest_change <= 1e-6
        assert same(bits(model), before)


@pytest.mark.parametrize("name", sorted(LAZY))
def test_a_lazy_model_is_refused_with_the_fix(name: str) -> None:
    (exhibit,) = [each for each in EXHIBITS if each.name == name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Called(exhibit)
    with pytest.raises(InitError, match="run the model once"):
        nethook.init.plan(model, ())
