"""Whose calls a scope sees; tests/modes has it with whole models."""

from __future__ import annotations

import _thread
import contextvars
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import nethook
from nethook import edits
from nethook.errors import OptionError
from nethook.hooks import threads
from nethook.hooks.hook import Owner
from nethook.hooks.threads import elsewhere, enter, leave, others_ran, stay


def in_thread(call):
    found = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


def test_a_block_belongs_to_its_context() -> None:
    owner = Owner("nethook.test")
    before = contextvars.copy_context()
    enter(owner, "own")
    assert not elsewhere(owner)
    assert contextvars.copy_context().run(elsewhere, owner) is False
    assert before.run(elsewhere, owner) is True
    assert in_thread(lambda: elsewhere(owner)) is True
    assert owner.others == 2
    assert 'threads="all"' in others_ran(owner, "trace")
    leave(owner)
    assert elsewhere(owner)


def test_a_scope_may_be_left_in_another_context() -> None:
    owner = Owner("nethook.test")
    inside = contextvars.copy_context()
    inside.run(enter, owner, "own")
    leave(owner)  # no error
    assert elsewhere(owner)


def test_what_is_attached_belongs_to_its_thread() -> None:
    owner = Owner("nethook.test")
    before = contextvars.copy_context()
    stay(owner, "own")
    assert not before.run(elsewhere, owner)
    assert in_thread(lambda: elsewhere(owner))


def test_all_is_all() -> None:
    owner = Owner("nethook.test")
    stay(owner, "all")
    assert not in_thread(lambda: elsewhere(owner))
    assert others_ran(owner, "trace") == ""


def test_copies_that_data_parallel_runs_in_threads_are_ours() -> None:
    owner = Owner("nethook.test")
    stay(owner, "own")
    replica = nn.Linear(1, 1)._replicate_for_data_parallel()
    assert not in_thread(lambda: elsewhere(owner, replica))
    assert in_thread(lambda: elsewhere(owner, nn.Linear(1, 1)))


def test_nothing_is_seen_after_a_fork() -> None:
    staying, entered = Owner("nethook.test"), Owner("nethook.test")
    stay(staying, "own")
    enter(entered, "own")
    child = os.fork()
    if child == 0:
        os._exit(int(elsewhere(staying)) + 2 * int(elsewhere(entered)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    leave(entered)


def test_an_attached_edit_is_of_its_thread() -> None:
    model = nn.Linear(2, 2)
    x = torch.ones(1, 2)
    plain = model(x)
    scope = nethook.edit(model, outputs={"": edits.zero()}).attach()
    assert torch.equal(in_thread(lambda: model(x)), plain)
    assert not model(x).any()
    scope.remove()


@pytest.mark.parametrize(
    "call",
    [
        lambda model: nethook.trace(model, threads="both"),
        lambda model: nethook.edit(model, outputs={"": edits.zero()}, threads="both"),
        lambda model: nethook.watch(model, threads="both"),
    ],
)
def test_another_word_is_refused(call) -> None:
    with pytest.raises(OptionError, match=r'`threads` must be "own" or "all"; got \'both\''):
        call(nn.Linear(1, 1))


def test_stopping_and_all_threads_do_not_go_together() -> None:
    with pytest.raises(OptionError, match="stop=True ends the forward of one thread"):
        nethook.trace(nn.Linear(1, 1), stop=True, threads="all")


def test_a_hook_that_another_thread_takes_off_does_no_harm() -> None:
    """Torch looks up how to call a hook after it has decided to call it."""
    model = nn.Sequential(nn.Linear(2, 2))
    scope = nethook.trace(model, inputs=True)

    def take_off(*_: object) -> None:
        scope.__exit__(None, None, None)

    other = model[0].register_forward_hook(take_off)
    tape = scope.__enter__()
    out = model(torch.ones(1, 2))  # ours is called without the keyword arguments it asked for
    assert out.shape == (1, 2)
    assert len(tape["0"].calls) == 1  # it began, and how it ended nobody was there to see
    other.remove()


class Branches(nn.Module):
    """Runs its parts in threads of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return in_thread(lambda: self.left(x)) + in_thread(lambda: self.right(x))


def test_threads_that_the_model_starts_are_ours() -> None:
    model, x = Branches(), torch.ones(1, 2)
    with nethook.trace(model, inputs=True) as tape:
        model(x)
        in_thread(lambda: model.left(x + 1))  # not in a call of the model: nobody asked for it
    assert torch.equal(tape["left"].input, x)
    assert torch.equal(tape["right"].output, model.right(x))
    with nethook.edit(model, outputs={"left": edits.zero()}):
        assert torch.equal(model(x), model.right(x))


class Asks(nn.Module):
    """A model whose forward asks, in threads of several kinds, whose call is under way."""

    def __init__(self, *ways) -> None:
        super().__init__()
        self.ways = ways

    def forward(self, ask):
        return [way(ask) for way in self.ways]


def test_a_thread_that_the_model_starts_helps_and_one_that_was_there_does_not() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # its thread runs from now on
        model = Asks(in_thread, lambda ask: pool.submit(ask).result())
        owner = Owner("nethook.test")
        enter(owner, "own", nn.ReLU(), model, nn.Tanh())
        try:
            assert model(lambda: elsewhere(owner)) == [False, True]
            assert in_thread(lambda: elsewhere(owner))  # the model is not called now
        finally:
            leave(owner)


@pytest.mark.parametrize(("backward", "torchs", "sees"), [
    (True, True, True), (True, False, False), (False, True, False), (False, False, False),
])  # fmt: skip
def test_the_backward_pass_of_a_device_runs_in_a_thread_of_torchs(
    backward: bool, torchs: bool, sees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python knows nothing of threads that torch starts: one made below `threading` is alike."""
    monkeypatch.setattr(threads, "backward_id", lambda: 0 if backward else -1)
    owner = Owner("nethook.test")
    enter(owner, "own")
    found: list[bool] = []
    if torchs:
        done = threading.Event()
        _thread.start_new_thread(lambda: (found.append(elsewhere(owner)), done.set()), ())
        done.wait()
    else:
        found.append(in_thread(lambda: elsewhere(owner)))
    leave(owner)
    assert found == [not sees]
