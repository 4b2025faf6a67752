"""Optimizers are noted as they are made, and weights as they are loaded."""

from __future__ import annotations

import copy
import gc
import inspect
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.process.origins import (
    line_of_optimizer,
    lines_of_schedulers,
    loads_of_itself,
    loads_of_the_same,
    loads_unmatched,
    note_origins,
    optimizers_made,
    steps_planned,
    was_filled,
    was_loaded,
    was_registered,
)


@pytest.fixture
def noted():
    with Attachment(Owner("test")) as hooks:
        note_origins(hooks)
        yield hooks


def test_an_optimizer_has_the_line_that_made_it(noted):
    model = nn.Linear(2, 2)
    line = inspect.currentframe().f_lineno + 1
    optimizer = torch.optim.Adam(model.parameters())
    assert line_of_optimizer(optimizer) == f"test_origins.py:{line}"
    assert any(each is optimizer for each in optimizers_made())


def test_a_scheduler_has_the_line_that_made_it(noted):
    first, other = (torch.optim.SGD(nn.Linear(2, 2).parameters(), 0.1) for _ in range(2))
    line = inspect.currentframe().f_lineno + 1
    steps = torch.optim.lr_scheduler.StepLR(first, 3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(first)  # calls no constructor of its base
    chained = torch.optim.lr_scheduler.ChainedScheduler([steps])
    assert lines_of_schedulers(first) == [f"test_origins.py:{line + at}" for at in range(3)]
    assert lines_of_schedulers(other) == []
    del plateau, chained
    gc.collect()
    assert lines_of_schedulers(first) == [f"test_origins.py:{line}"]


def test_nothing_is_kept_alive(noted):
    before = len(optimizers_made())
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), 0.1)
    assert len(optimizers_made()) == before + 1
    del optimizer
    gc.collect()
    assert len(optimizers_made()) == before


def test_an_error_of_the_constructor_is_the_scripts(noted):
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD([], 0.1)


def test_only_while_it_is_on():
    made = torch.optim.Optimizer.__init__, nn.Module.load_state_dict
    with Attachment(Owner("test")) as hooks:
        note_origins(hooks)
    assert (torch.optim.Optimizer.__init__, nn.Module.load_state_dict) == made
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), 0.1)
    assert line_of_optimizer(optimizer) == ""


def test_what_was_loaded(noted):
    model, other = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), nn.Linear(2, 2)
    assert not any(map(was_filled, model.parameters()))
    model[0].load_state_dict(other.state_dict())
    assert [was_filled(tensor) for tensor in model.parameters()] == [True, True, False, False]
    half = nn.Linear(2, 2)
    half.load_state_dict({"bias": torch.zeros(2)}, strict=False)
    assert (was_filled(half.weight), was_filled(half.bias)) == (False, True)


def test_a_state_that_does_not_fit_is_an_error_of_the_scripts(noted):
    with pytest.raises(RuntimeError, match="Missing key"):
        nn.Linear(2, 2).load_state_dict({})


def test_what_was_trained_before():
    model = nn.Linear(2, 2)
    nn.init.xavier_uniform_(model.weight)
    nn.init.zeros_(model.bias)
    assert not any(map(was_filled, model.parameters()))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(3, 2)).sum().backward()
        optimizer.step()
    assert all(map(was_filled, model.parameters()))


def test_weights_that_are_loaded_are_noticed() -> None:
    original = nn.Module.load_state_dict
    hooks = Attachment(Owner("test"))
    note_origins(hooks)
    try:
        fresh, whole = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        backbone, refused = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3)), nn.Linear(3, 3)
        assert str(whole.load_state_dict(whole.state_dict())) == "<All keys matched successfully>"
        backbone[0].load_state_dict(fresh.state_dict())
        with pytest.raises(RuntimeError):
            refused.load_state_dict(fresh.state_dict())
    finally:
        hooks.remove()
    assert was_loaded(whole)
    assert was_loaded(backbone)  # a part of it
    assert not was_loaded(fresh)
    assert not was_loaded(refused)
    assert nn.Module.load_state_dict is original
    fresh.load_state_dict(fresh.state_dict())
    assert not was_loaded(fresh)  # nobody looks any more


def test_models_that_know_what_they_were_made_from() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model.config = SimpleNamespace(_name_or_path="")  # type: ignore[assignment]
    assert not was_loaded(model)
    model.config = SimpleNamespace(_name_or_path="bert-base-uncased")  # type: ignore[assignment]
    assert was_loaded(model)


def trained(model, steps=12):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 2)).sum().backward()
        optimizer.step()


def test_a_state_that_is_kept_by_reference_and_loaded(noted):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    best = model.state_dict()
    trained(model)
    line = inspect.currentframe().f_lineno + 1
    model.load_state_dict(best)
    assert loads_of_itself() == [{"line": f"test_origins.py:{line}", "writes": 12}]


@pytest.mark.parametrize(
    "kept",
    [
        lambda model: copy.deepcopy(model.state_dict()),
        lambda model: {name: value.clone() for name, value in model.state_dict().items()},
        lambda model: None,
    ],
)
def test_loads_that_have_an_effect_or_need_none(noted, kept):
    model = nn.Linear(2, 2)
    best = kept(model)
    trained(model)
    # What was taken just now may have been changed in place, and loading it does no harm.
    model.load_state_dict(best or model.state_dict())
    other = nn.Linear(2, 2)
    state = model.state_dict()
    trained(model)
    other.load_state_dict(state)  # a target network that follows
    assert loads_of_itself() == []


def test_a_parameter_of_a_module_that_is_gone(noted):
    weight, loose = nn.Linear(2, 2).weight, nn.Parameter(torch.zeros(2))
    assert was_registered(weight)
    assert not was_registered(loose)


def test_a_target_network_that_copies_itself(noted):
    target = nn.Linear(2, 2)
    for _ in range(4):
        line = inspect.currentframe().f_lineno + 1
        target.load_state_dict(target.state_dict())
    assert loads_of_the_same() == [{"line": f"test_origins.py:{line}", "times": 4}]


def soft(target, model):
    """A soft update in place: loading what was changed is one line too many, and does no harm."""
    state = target.state_dict()
    for name, value in model.state_dict().items():
        state[name].mul_(0.9).add_(value, alpha=0.1)
    target.load_state_dict(state)


def mixed(target, model):
    """The same with new tensors."""
    old, new = target.state_dict(), model.state_dict()
    target.load_state_dict({name: 0.9 * old[name] + 0.1 * new[name] for name in old})


@pytest.mark.parametrize(
    "follow",
    [
        lambda target, model: target.load_state_dict(model.state_dict()),
        lambda target, model: target.load_state_dict(copy.deepcopy(target.state_dict())),
        lambda target, model: model.load_state_dict(model.state_dict()),  # it learns all the same
        soft,
        mixed,
    ],
)
def test_targets_that_follow(noted, follow):
    target, model = nn.Linear(2, 2), nn.Linear(2, 2)
    for _ in range(4):
        trained(model)
        follow(target, model)
    assert loads_of_the_same() == []


def encoder():
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))


def test_a_state_whose_names_begin_otherwise(noted):
    state = {f"module.{name}": value for name, value in encoder().state_dict().items()}
    part = encoder()
    line = inspect.currentframe().f_lineno + 1
    part.load_state_dict({**state, "head.weight": torch.zeros(1)}, strict=False)
    model = nn.Sequential(part, nn.Linear(2, 2))
    assert loads_unmatched([model]) == [
        {
            "line": f"test_origins.py:{line}", "given": 5, "wanted": 4, "fits": 4,
            "one_given": "module.0.weight", "one_wanted": "0.weight",
        }
    ]  # fmt: skip
    assert loads_unmatched([encoder()]) == []  # of another model
    part.load_state_dict(encoder().state_dict())  # and now it is filled
    assert loads_unmatched([model]) == []


class Renaming(nn.Sequential):
    """A model that knows the names of its older checkpoints."""

    def _load_from_state_dict(self, state, prefix, *args):
        for name in [name for name in state if name.startswith("module.")]:
            state[name.removeprefix("module.")] = state.pop(name)
        super()._load_from_state_dict(state, prefix, *args)


@pytest.mark.parametrize(
    "load",
    [
        lambda model, state: model.load_state_dict(state),
        lambda model, state: model.load_state_dict({"1.bias": state["1.bias"]}, strict=False),
        lambda model, state: model.load_state_dict({}, strict=False),
        lambda model, state: model.load_state_dict(
            {"0.weight": state["0.weight"], "head.weight": torch.zeros(1)}, strict=False
        ),
        lambda model, state: model[1].load_state_dict(
            {"weight": state["1.weight"], "scale": torch.zeros(1)}, strict=False
        ),
    ],
)
def test_states_of_which_something_fits(noted, load):
    model = encoder()
    load(model, encoder().state_dict())
    assert loads_unmatched([model]) == []


def test_a_model_that_renames_what_it_loads(noted):
    model = Renaming(nn.Linear(2, 3), nn.Linear(3, 2))
    state = {f"module.{name}": value for name, value in encoder().state_dict().items()}
    model.load_state_dict(state, strict=False)
    assert loads_unmatched([model]) == []


def test_the_steps_that_a_cycle_is_laid_out_for(noted):
    first, other = (torch.optim.SGD(nn.Linear(2, 2).parameters(), 0.1) for _ in range(2))
    schedule = torch.optim.lr_scheduler
    kept = schedule.OneCycleLR(first, 0.1, epochs=4, steps_per_epoch=5), schedule.StepLR(other, 3)
    assert (steps_planned(first), steps_planned(other)) == ([20], [])
    assert len(kept) == 2
