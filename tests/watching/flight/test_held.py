"""The calls that are held: in a ring as a rule, the last alone where nothing is due."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from nethook.watching.clock.calls import PLAIN
from nethook.watching.flight.held import CALM, HeldCalls

MODULE = nn.Linear(4, 2)


@pytest.fixture
def journal():
    """What `HeldCalls` reads of a journal."""
    return SimpleNamespace(
        clock=SimpleNamespace(step=0, forwards=1),
        schedule=SimpleNamespace(quiet=False),
        train=SimpleNamespace(has_devices=False),
    )


def begins(held, journal, batch, *, step, quiet=False):
    journal.clock.step, journal.schedule.quiet = step, quiet
    held.begins("", MODULE, (batch,), PLAIN)


def test_the_last_steps_are_in_the_ring(journal):
    held = HeldCalls(journal, 2)
    for step in range(4):
        begins(held, journal, torch.full((1, 4), float(step)), step=step)
    assert [call.step for call in held.calls] == [2, 3]
    assert held.last is held.calls[-1]
    assert held.last.args[0].tolist() == [[3.0] * 4]


def test_in_a_quiet_step_the_last_call_is_held_alone_until_somebody_asks(journal):
    held = HeldCalls(journal, 3)
    begins(held, journal, torch.ones(1, 4), step=0)
    batch = torch.zeros(1, 4)
    begins(held, journal, batch, step=1, quiet=True)
    assert [call.step for call in held.calls] == [0]
    assert held.plain.held is not None
    batch.add_(1)
    assert held.last.step == 1
    assert held.last.overwritten
    assert [call.step for call in held.calls] == [0, 1]
    assert held.plain.held is None


@pytest.mark.parametrize("change", ["second", "device", "before"])
def test_a_quiet_step_that_is_not_ordinary_goes_to_the_ring(journal, change):
    held = HeldCalls(journal, 3)
    if change != "before":  # how large batches are is not known before the first
        begins(held, journal, torch.ones(1, 4), step=0)
    journal.clock.forwards = 2 if change == "second" else 1
    journal.train.has_devices = change == "device"
    begins(held, journal, torch.zeros(1, 4), step=1, quiet=True)
    assert held.plain.held is None
    assert held.calls[-1].step == 1


def test_random_states_are_held_unless_nothing_is_drawn_for_long(journal):
    held = HeldCalls(journal, 3)
    for step in range(CALM):
        begins(held, journal, torch.ones(1, 4), step=step)
        held.ended()
    begins(held, journal, torch.ones(1, 4), step=CALM, quiet=True)
    assert held.last.random == {}
    held.mode_changed()
    state = torch.get_rng_state()
    begins(held, journal, torch.ones(1, 4), step=CALM + 1, quiet=True)
    assert torch.equal(held.last.random["cpu"], state)


def test_nothing_is_held_without_steps_or_after_letting_go(journal):
    none, some = HeldCalls(journal, 0), HeldCalls(journal, 3)
    batch = torch.ones(1, 4)
    gone = weakref.ref(batch)
    for held in (none, some):
        begins(held, journal, batch, step=0)
        begins(held, journal, batch, step=1, quiet=True)
    assert none.last is None
    assert none.calls == []
    some.let_go()
    begins(some, journal, batch, step=2)
    assert some.last is None
    assert some.calls == []
    del batch
    gc.collect()
    assert gone() is None
