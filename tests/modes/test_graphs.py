"""How many graphs there are: with taps and without, whatever the budget does."""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path

import torch

import nethook
from nethook.hooks.compile.graph import shown
from tests.modes import compiling as c
from tests.modes.steps import batches, network


def test_two_graphs_in_two_hundred_steps(tmp_path: Path) -> None:
    [(x, y)] = batches("mlp", 1)
    changes = 0
    with c.fresh():
        model = network("mlp")
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        compiled = c.whole(model)
        with nethook.watch(compiled, optimizer, to=tmp_path / "run.db", budget=None) as watch:
            schedule = watch._session.schedule
            watch.be_silent()
            for step in range(200):
                optimizer.zero_grad()
                was = shown.on
                c.loss(compiled(x), y).backward()
                optimizer.step()
                # As a budget does it, only more often.
                schedule.outputs = schedule.grads = step % 3 == 0
                shown.ask(schedule, schedule.outputs)
                changes += shown.on is not was
        assert c.graphs() == 2
        assert changes > 100
        outputs = nethook.open_run(tmp_path / "run.db").series("0", "outputs")
        assert 60 <= outputs["tensors"].sum() <= 70


def test_a_copy_of_a_watched_model_has_no_taps(tmp_path: Path) -> None:
    [(x, _)] = batches("mlp", 1)
    with c.fresh():
        model = network("mlp")
        with nethook.watch(model, to=tmp_path / "run.db") as watch:
            watch.be_silent()
            other = copy.deepcopy(model)
            assert torch.equal(c.whole(other)(x), model(x))
            assert watch._session.clock.totals["forwards"] == 1


def test_settings_of_torch_are_as_before(tmp_path: Path) -> None:
    config = torch._dynamo.config
    before = config.skip_nnmodule_hook_guards
    model = network("mlp")
    with contextlib.suppress(KeyError), nethook.watch(model, to=tmp_path / "run.db") as watch:
        watch.be_silent()
        assert config.skip_nnmodule_hook_guards is False
        raise KeyError
    assert config.skip_nnmodule_hook_guards is before
    assert not nethook.audit(model).ours
