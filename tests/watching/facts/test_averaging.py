"""Over how many ranks gradients are averaged; real ranks are in tests/modes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from torch import nn

from nethook.watching.facts import averaging
from nethook.watching.facts.averaging import Averaging


def test_a_model_that_nothing_is_wrapped_around_is_averaged_over_itself():
    assert Averaging().over(nn.Linear(2, 2)) == 1


@pytest.fixture
def sharded(monkeypatch):
    """FSDP2's groups of a model, with a mesh of so many ranks; how often they were asked for."""
    asked = []

    def groups(model):
        asked.append(model)
        mesh = SimpleNamespace(size=lambda: 8)
        return [SimpleNamespace(mesh_info=SimpleNamespace(mesh=mesh))] * 2

    monkeypatch.setattr(averaging, "groups_of", groups)
    return asked


def test_a_sharded_model_is_asked_once(sharded):
    over = Averaging()
    model = nn.Linear(2, 2)
    assert [over.over(model) for _ in range(3)] == [8, 8, 8]
    assert sharded == [model]


def test_ddp_at_work_knows_it_now(sharded, monkeypatch):
    group = SimpleNamespace(process_group=SimpleNamespace(size=lambda: 4))
    monkeypatch.setattr(averaging, "ddp_at_work", lambda parallel: group)
    assert Averaging().over(nn.Linear(2, 2)) == 4
    assert sharded == []
