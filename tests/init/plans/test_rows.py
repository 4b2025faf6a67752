"""A plan as plain data: JSON, differences, tables."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from nethook.errors import InitError, NoSuchSiteError
from nethook.init import Plan, apply_, plan
from tests.init.networks import gpt2, mlp

TOKENS = torch.randint(1, 20, (4, 12))


def test_json_and_back():
    found = plan(gpt2(), TOKENS)
    text = found.to_json()
    assert json.loads(text)["model"] == "GPT2LMHeadModel"
    again = Plan.from_json(text)
    assert again == found
    a, b = gpt2(), gpt2()
    apply_(a, found, 3)
    apply_(b, again, 3)
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


@pytest.mark.parametrize(
    "text", ["{}", "[]", "1", "nonsense", '{"schema": 99}', '{"schema": 1, "rows": [{"a": 1}]}']
)
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(InitError, match=r"must be a plan that `to_json` wrote|got schema 99"):
        Plan.from_json(text)


def test_the_difference_of_two_plans():
    model, x = mlp(3, nn.GELU), torch.randn(8, 64)
    auto, he = plan(model, x), plan(model, x, "he")
    assert len(auto.diff(auto)) == 0
    assert not auto.diff(auto)
    found = auto.diff(he)
    fields = {(each.parameter, each.field) for each in found}
    assert ("2.weight", "distribution") in fields
    assert ("2.bias", "std") not in fields
    assert "differences between auto and he" in repr(found)
    assert "<table>" in found._repr_html_()
    assert found.to_dict()["changes"][0]["parameter"] == "0.weight"
    other = auto.diff(plan(mlp(2, nn.GELU), x))
    assert ("4.weight", "only in this plan") in {(each.parameter, each.first) for each in other}


def test_looks():
    found = plan(mlp(3, nn.GELU), torch.randn(8, 64))
    text = repr(found)
    assert text.startswith("plan for Sequential (auto): 6 parameters to set")
    assert "gain 1.534 of gelu" in text
    assert "<table>" in found._repr_html_()
    with pytest.raises(NoSuchSiteError, match=r"Closest: '0.weight'"):
        found["0.weigth"]
