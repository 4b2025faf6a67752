"""What the records of a tape share: the forwards, and which of them runs in which thread."""

import threading

import torch

from nethook.tracing.tape.state import StateOfThreads
from tests.tracing.asked import options, state

PROMPT, TOKEN = (torch.zeros(1, 5),), (torch.zeros(1, 1),)


def test_forwards_are_numbered_from_zero():
    one = state()
    assert (one.forward, one.forwards) == (None, 0)
    for number in range(3):
        one.begin_forward((PROMPT,))
        assert (one.forward, one.forwards) == (number, number + 1)


def test_steps_count_from_each_prompt():
    one = state()
    for args in (PROMPT, TOKEN, TOKEN, PROMPT, TOKEN):
        one.begin_forward((args, {}))
    assert one.steps() == {0: 0, 1: 1, 2: 2, 3: 0, 4: 1}
    assert one.steps().get(None) is None  # a module that was called on its own


def test_a_forward_from_before_a_clear_has_no_step():
    one = state()
    one.begin_forward((PROMPT,))
    one.clear()
    assert one.forward == 0  # it still runs
    assert one.steps().get(one.forward) is None
    one.begin_forward((PROMPT,))
    assert (one.forward, one.steps()) == (0, {0: 0})


def test_every_thread_has_a_forward_of_its_own_and_the_numbers_are_shared():
    shared = StateOfThreads(options(threads="all"))
    shared.begin_forward((PROMPT,))
    shared.depth += 1
    seen = []

    def run():
        seen.append((shared.forward, shared.depth))
        shared.begin_forward((PROMPT,))
        seen.append((shared.forward, shared.depth))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(None, 0), (1, 0)]
    assert (shared.forward, shared.depth, shared.forwards) == (0, 1, 2)


def test_a_state_does_not_know_a_model_until_it_is_told():
    assert state().model() is None
    assert state(grads=True).options.grads
