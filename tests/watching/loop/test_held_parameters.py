"""Which optimizer holds which parameter is known, and what none of them holds is measured, too."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook


def loop(model, optimizers, steps):
    for _ in range(steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
        model(torch.randn(5, 3)).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))


def addresses(parameters):
    return [facts.address for facts in parameters.all]


def test_each_optimizer_has_a_set_of_what_it_holds(model, tmp_path):
    first, last = (torch.optim.SGD(model[at].parameters(), lr=0.1) for at in (0, 2))
    with nethook.watch(model, [first, last], to=tmp_path / "run.db") as watch:
        loop(model, [first, last], 2)
        optimizers = watch._session.optimizers
        held = [addresses(track.set) for track in optimizers.tracks.values()]
        assert held == [["0.weight", "0.bias"], ["2.weight", "2.bias"]]
        assert optimizers.held.plain
        assert optimizers.held.with_gradient() == 4
        assert optimizers.held.memory > 0


def test_a_parameter_has_an_address_and_a_stranger_none(model, tmp_path):
    with nethook.watch(model, to=tmp_path / "run.db") as watch:
        held = watch._session.optimizers.held
        assert held.address_of(model[2].bias) == "2.bias"
        assert held.address_of(torch.zeros(1)) is None


def test_parameters_that_no_optimizer_holds_are_measured_without_a_budget(model, tmp_path):
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None):
        loop(model, [optimizer], 3)
    with nethook.open_run(tmp_path / "run.db") as run:
        sites = {site.address: site.info for site in run.sites}
        assert sites["0.weight"]["groups"] == [["0", 0]]
        assert sites["2.weight"]["groups"] == []
        loose = run.series("2.weight", "params")
        assert loose["mean"].tolist() == pytest.approx([model[2].weight.mean().item()] * 3)


def test_a_group_that_joins_is_an_event(model, tmp_path):
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None):
        loop(model, [optimizer], 2)
        optimizer.add_param_group({"params": list(model[2].parameters())})
        loop(model, [optimizer], 2)
    with nethook.open_run(tmp_path / "run.db") as run:
        (event,) = [event for event in run.events if event.kind == "parameters"]
        assert event.step == 2
        assert event.data["groups"]["2.bias"] == [["0", 1]]
