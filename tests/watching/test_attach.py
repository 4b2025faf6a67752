"""Putting a watch on: what is accepted, which hooks there are, and that failing leaves none."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import InputsError, OptionError
from nethook.hooks.wrapped import wrapped_functions
from nethook.watching.attach import given_models, given_optimizers


def test_models_are_named():
    a, b = nn.Linear(1, 1), nn.Linear(1, 1)
    assert given_models(a) == {"": a}
    assert given_models([a, b]) == {"0": a, "1": b}
    assert given_models({"G": a, "D": b}) == {"G": a, "D": b}


@pytest.mark.parametrize(
    ("model", "error", "text"),
    [
        ("text", InputsError, r"^`model` must be an nn\.Module, or a list or dict .*; got str\."),
        ([3], InputsError, r"^`model` must contain only nn\.Modules; got int as '0'\."),
        ({1: nn.Identity()}, OptionError, r"^`model` must have names .*; got 1\."),
        ({"": nn.Identity()}, OptionError, r"; got ''\."),
        ({"@a": nn.Identity()}, OptionError, r"; got '@a'\."),
        ([], OptionError, r"^`model` must contain at least one nn\.Module; got none\."),
    ],
)
def test_other_things_are_no_models(model, error, text):
    with pytest.raises(error, match=text):
        given_models(model)


def test_optimizers_are_a_list():
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), 0.1)
    assert given_optimizers(None) == []
    assert given_optimizers(optimizer) == [optimizer]
    assert given_optimizers((optimizer, optimizer)) == [optimizer, optimizer]
    with pytest.raises(InputsError, match=r"^`optimizer` must be .*; got float\..*None"):
        given_optimizers([0.1])


def test_a_parameter_of_two_modules_is_one(tmp_path):
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(3, 3, bias=False)
            self.b = nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    model = Tied()
    with nethook.watch(model, to=tmp_path / "run.db", budget=None) as watch:
        watch.be_silent()
        model(torch.ones(1, 3)).sum().backward()
    with nethook.open_run(tmp_path / "run.db") as run:
        [parameter] = [site for site in run.sites if site.kind == "Parameter"]
        assert sorted(parameter.info["owners"]) == ["a", "b"]
        assert run.info["models"][""]["parameters"] == 9


def test_only_chosen_layers_are_tapped(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
    with nethook.watch(model, to=tmp_path / "run.db", exclude="2", budget=None) as watch:
        watch.be_silent()
        model(torch.ones(1, 3)).sum().backward()
    with nethook.open_run(tmp_path / "run.db") as run:
        tapped = {info.address for info in run.catalogue if info.quantity == "outputs"}
        assert tapped >= {"0", "1"}
        assert "2" not in tapped


def test_a_lazy_layer_has_to_be_made_first(tmp_path):
    model = nn.Sequential(nn.LazyLinear(3))
    with pytest.raises(InputsError, match=r"^'0\.weight' has no shape .* run the model once"):
        nethook.watch({"net": model}["net"], to=tmp_path / "run.db")
    assert not (tmp_path / "run.db").exists()


def test_snapshots_of_several_models_begin_with_a_name(tmp_path):
    models = {"G": nn.Linear(1, 1), "D": nn.Linear(1, 1)}
    text = r"^`snapshots` must begin with the name of a model; got 'fc'\. The models are G, D\.$"
    with pytest.raises(OptionError, match=text):
        nethook.watch(models, to=tmp_path / "run.db", snapshots={"fc": 1})
    assert all(not nethook.audit(model).ours for model in models.values())
    assert not list(wrapped_functions())


def test_all_hooks_go_when_watching_ends(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    with nethook.watch(model, to=tmp_path / "run.db") as watch:
        watch.be_silent()
        assert nethook.audit(model).ours
    assert not nethook.audit(model).ours
    assert not list(wrapped_functions())
