"""Attributes one slip away from a switch of torch's are found, and no others."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from torch import nn

from nethook.watching.facts.attributes import Attributes, is_slip, line_of


@pytest.mark.parametrize(
    "name",
    ["require_grad", "requires_grads", "requires_gard", "requiresgrad", "reqires_grad",
     "requires_grab", "Requires_grad"],
)  # fmt: skip
def test_slips(name):
    assert is_slip(name, "requires_grad")


@pytest.mark.parametrize(
    "name", ["requires_grad", "grad", "requires", "_requires_grad", "retains_grad", "trainable", ""]
)
def test_other_names(name):
    assert not is_slip(name, "requires_grad")


def test_what_was_set_on_parameters_and_modules():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    assert Attributes({"": model}).found(0) == []
    model[0].weight.require_grad = False
    model[0].bias.require_grad = False
    model[1].requires_grad = False
    model[1].trainning = False
    looks = Attributes({"net": model})
    parameters, *modules = sorted(looks.found(7), key=lambda one: one["of"])[::-1]
    assert [one["since"] for one in looks.found(9)] == [7, 7, 7]
    assert (parameters["name"], parameters["meant"]) == ("require_grad", "requires_grad")
    assert parameters["sites"] == ["net.0.weight", "net.0.bias"]
    assert parameters["count"] == 2
    assert sorted(one["meant"] for one in modules) == ["requires_grad_()", "training"]


def test_the_line_is_one_that_sets_it_and_no_comment(tmp_path, monkeypatch):
    script = tmp_path / "train.py"
    script.write_text(
        '"""p.require_grad = False"""\n# p.require_grad = False\np.require_grad = 1\n'
    )
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=str(script)))
    assert line_of("require_grad") == "train.py:3"
    assert line_of("requires_grad") == ""
    script.write_text("not Python")
    assert line_of("require_grad") == ""
