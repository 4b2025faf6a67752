"""A watched run is bit for bit the unwatched one, whatever the loop."""

from __future__ import annotations

import pytest
import torch

import nethook
from nethook.hooks.attachment import Resting
from nethook.runs.names import loss_name
from nethook.watching import budget
from tests.watching.loops import LOOPS, same, unwatched

pytestmark = [
    pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.mark.parametrize("name", LOOPS)
def test_fifty_steps_are_the_same_to_the_last_bit(name, tmp_path):
    steps = 6 if name.startswith("workers") else 50
    torch.manual_seed(0)
    alone = LOOPS[name](unwatched, steps)
    watches = []

    def start(model, optimizer):
        watches.append(nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None))
        return watches[0]

    torch.manual_seed(0)
    watched = LOOPS[name](start, steps)
    assert same(alone, watched)
    run = nethook.open_run(tmp_path / "run.db")
    assert not [event for event in run.events if event.kind == "watch-failed"]
    expected = {"lbfgs": steps // 3}.get(name, steps)
    assert run.info["totals"]["steps"] == expected
    assert not nethook.audit(next(iter(watches[0]._session.models.values()))).ours


@pytest.mark.parametrize("name", ["cnn_sgd", "accumulation", "gan", "checkpointed", "autocast"])
def test_steps_in_which_taps_rest_are_the_same_too(name, tmp_path, monkeypatch):
    torch.manual_seed(0)
    alone = LOOPS[name](unwatched, 30)
    monkeypatch.setattr(budget, "ALLOWANCE", -1e3)  # as if much was overdrawn
    monkeypatch.setattr(budget, "WHOLE", -1e3)
    rested = []
    rest = Resting.rest
    monkeypatch.setattr(Resting, "rest", lambda self: (rested.append(len(self)), rest(self)))

    def start(model, optimizer):
        return nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=0.001)

    torch.manual_seed(0)
    watched = LOOPS[name](start, 30)
    assert same(alone, watched)
    assert rested
    assert min(rested) > 0
    run = nethook.open_run(tmp_path / "run.db")
    assert not [event for event in run.events if event.kind == "watch-failed"]
    (loss, *_) = run.info["losses"]
    assert len(run.scalars[loss_name(loss)].step) == 30  # never left out


def test_the_comparison_can_fail():
    assert not same([torch.ones(2)], [torch.tensor([1.0, 1.0 + 1e-7])])
    assert not same([torch.ones(2)], [])
