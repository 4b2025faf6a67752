"""Which step it is: tables of what loops do, and random loops against a plain count."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.watching.clock.clock import (
    BACKWARD,
    DUE,
    FORWARD,
    OPTIMIZER,
    PATIENCE,
    UNDER_WAY,
    Clock,
)


class Driver:
    """Tells a clock what a loop does, as a session would, and notes what each step had.

    Events, each a word: `F` a forward with gradients, `E` one without (in evaluation mode), `B` a
    backward pass, `R` a block that is recomputed in one, `Z` zero_grad, `S` a step, `Sb` that of a
    second optimizer, `K` a step that a loss scaler skips, `C` a step with a closure (F and B inside
    it), `X` a step that raises and leaves weights as they were, `Y` one that raises and has changed
    them, `!F` a forward that raises, `M` weights that are changed by hand.
    """

    def __init__(self, optimizers: str = "a") -> None:
        self.clock = Clock()
        self.steps: list[dict[str, Any]] = []
        self.moved = False
        for key in optimizers:
            self.clock.turns.join(ord(key))

    def tell(self, loop: str) -> list[dict[str, Any]]:
        for event in loop.split():
            key = ord("b") if event.endswith("b") else ord("a")
            {
                "F": self.forward, "E": self.evaluate, "B": self.backward, "R": lambda _: None,
                "Z": lambda _: self.clock.zeroed(True), "S": self.step, "K": self.skip,
                "C": self.closure, "X": self.raises, "Y": self.raises_late, "!": self.interrupted,
                "M": self.move,
            }[event[0]](key)  # fmt: skip
        return self.steps

    def forward(self, _: int) -> None:
        clock = self.clock
        if clock.calls.depth:  # on no stack any more
            clock.calls.interrupted(0)
        assert clock.calls.begins("")
        clock.calls.training = True
        if clock.no_grad.open:
            clock.pass_ends()
        by_hand = clock.kind == OPTIMIZER and clock.optimizer_steps == 0 and clock.backwards
        if by_hand and self.moved and not clock.turns.inside:
            clock.kind = BACKWARD
        if clock.begins_next_step(PATIENCE):
            clock.kind = BACKWARD if clock.kind == OPTIMIZER else clock.kind
            self.end()
        clock.calls.called = True
        clock.call_begins()
        assert clock.calls.ends()

    def evaluate(self, _: int) -> None:
        if self.clock.calls.depth:
            self.clock.calls.interrupted(0)
        assert self.clock.calls.begins("")
        self.clock.calls.training = False
        self.clock.pass_begins()
        self.clock.pass_evaluates()
        self.clock.calls.ends()

    def backward(self, _: int) -> None:
        self.moved = False
        self.clock.backward_begins()

    def move(self, _: int) -> None:
        self.moved = True

    def begins(self, key: int) -> None:
        clock = self.clock
        if clock.turns.inside:  # on no stack any more
            clock.turns.interrupted(0)
        assert clock.turns.begins()
        if clock.no_grad.open:
            clock.pass_ends()
        clock.kind = OPTIMIZER
        if clock.steps_again(key):
            clock.turns.cut_short()
            self.end()
        clock.turns.begun = key

    def step(self, key: int) -> None:
        self.begins(key)
        if self.clock.step_ends(key):
            assert self.clock.ending == DUE
            self.end()

    def closure(self, key: int) -> None:
        self.begins(key)
        for _ in range(3):
            self.clock.zeroed(True)
            self.forward(key)
            self.backward(key)
        if self.clock.step_ends(key):
            self.end()

    def skip(self, key: int) -> None:
        if self.clock.step_skipped(key):
            self.end()

    def raises(self, key: int) -> None:
        self.begins(key)

    def raises_late(self, key: int) -> None:
        self.begins(key)
        assert self.clock.turns.interrupted(0) == key
        if self.clock.step_ends(key):  # made up for
            self.end()

    def interrupted(self, _: int) -> None:
        self.clock.calls.begins("")

    def end(self) -> None:
        clock = self.clock
        clock.end_begins()
        assert clock.ending == UNDER_WAY
        self.steps.append(
            {
                "F": clock.forwards,
                "B": clock.backwards,
                "S": clock.stepped,
                "skipped": clock.skipped,
            }
        )
        before = clock.step
        clock.step_over()
        assert (clock.step, clock.ending) == (before + 1, 0)


def had(loop: str, optimizers: str = "a") -> list[tuple[int, int, int]]:
    """Forwards, backward passes and steps of optimizers in each step."""
    return [(step["F"], step["B"], step["S"]) for step in Driver(optimizers).tell(loop)]


@pytest.mark.parametrize(
    ("loop", "optimizers", "expected"),
    [
        pytest.param("Z F B S Z F B S", "a", [(1, 1, 1)] * 2, id="plain loop"),
        pytest.param("F B Z S F B S", "a", [(1, 1, 1)] * 2, id="cleared too late"),
        pytest.param("F B F B F B S F B F B S", "a", [(3, 3, 1), (2, 2, 1)], id="accumulation"),
        pytest.param("F B Sb F B S F B Sb F B S", "ab", [(2, 2, 2)] * 2, id="GAN"),
        pytest.param("F B S Sb F B S Sb", "ab", [(1, 1, 2)] * 2, id="several optimizers"),
        pytest.param(
            "F B S F B S F B S F B Sb F B S F B S",
            "ab",
            # Two are ended by force, when the first steps again; then the second is not waited for.
            [(2, 2, 1), (1, 1, 1), (0, 0, 1), (2, 2, 2), (1, 1, 1)],
            id="critic that is trained more often",
        ),
        pytest.param("C C", "a", [(3, 3, 1)] * 2, id="closure"),
        pytest.param("F S Sb B F S Sb B", "ab", [(1, 0, 2), (1, 1, 2)], id="optimizer in backward"),
        pytest.param("F B K F B S", "a", [(1, 1, 0), (1, 1, 1)], id="scaler that skips"),
        pytest.param("F B M F B M F B M F", "a", [(1, 1, 0)] * 3, id="updates by hand"),
        pytest.param("F B X F B S", "a", [(2, 2, 1)], id="step that raised"),
        pytest.param("F B Y F B S", "a", [(1, 1, 1)] * 2, id="step that raised after it moved"),
        pytest.param("F B S !F F B S", "a", [(1, 1, 1)] * 2, id="forward that raised"),
        pytest.param("F B S E E F B S", "a", [(1, 1, 1)] * 2, id="evaluation inside training"),
        pytest.param("F B R R S F B R R S", "a", [(1, 1, 1)] * 2, id="recompute"),
        pytest.param("S S S", "a", [(0, 0, 1)] * 3, id="compiled step"),
    ],
)
def test_a_loop_has_these_steps(loop, optimizers, expected):
    assert had(loop, optimizers) == expected


def test_without_a_step_of_an_optimizer_each_backward_pass_counts_after_a_while():
    driver = Driver()
    driver.tell("F B " * (PATIENCE + 4) + "F")
    assert driver.clock.kind == BACKWARD
    assert [(step["F"], step["B"]) for step in driver.steps] == [(PATIENCE, PATIENCE)] + [
        (1, 1)
    ] * 4


def test_a_step_of_an_optimizer_brings_its_clock_back():
    driver = Driver()
    driver.tell("F B M F B M F B S F B S")
    assert driver.clock.kind == OPTIMIZER
    assert [step["B"] for step in driver.steps] == [1, 1, 1, 1]


def test_where_calls_count_each_begins_a_step():
    driver = Driver()
    driver.clock.kind = FORWARD
    driver.tell("F F F")
    assert [step["F"] for step in driver.steps] == [1, 1]


def test_a_pass_without_gradient_is_what_it_turns_out_to_be():
    clock = Clock()
    clock.calls.training = False
    assert clock.pass_begins()
    assert not clock.pass_begins()  # the same one
    assert (clock.phase, clock.pass_ends(), clock.totals["evaluations"]) == ("aux", "aux", 0)
    clock.pass_begins()
    clock.pass_evaluates()
    assert (clock.phase, clock.pass_ends(), clock.totals["evaluations"]) == ("eval", "eval", 1)
    clock.calls.training = True
    assert clock.phase == "train"


def test_gradients_that_nobody_used_are_counted_when_they_are_wiped():
    clock = Clock()
    clock.backward_begins()
    clock.backward_begins()
    assert (clock.zeroed(True), clock.gradients.cleared) == (2, True)
    assert clock.zeroed(False) == 0
    clock.backward_begins()
    clock.turns.join(1)
    clock.step_ends(1)
    assert (clock.zeroed(True), clock.gradients.since_step) == (0, 0)


def test_something_is_unfinished_from_its_beginning_to_its_end():
    clock = Clock()
    assert not clock.unfinished
    clock.calls.begins("")
    assert clock.unfinished
    clock.calls.ends()
    clock.turns.begins()
    assert clock.unfinished
    clock.step_ends(7)
    assert clock.unfinished  # the end of the step is due
    clock.step_over()
    assert not clock.unfinished


def test_a_run_that_goes_on_counts_from_where_it_was():
    clock = Clock(100)
    clock.step_over()
    assert (clock.step, clock.first_step, clock.totals["steps"]) == (101, 100, 1)


EVENTS = st.lists(st.sampled_from(["F", "E", "B", "R", "Z", "S", "K", "C", "X", "Y", "!F", "M"]))


@given(EVENTS)
def test_no_step_of_an_optimizer_is_lost_or_counted_twice(events):
    """With one optimizer each of its steps, taken or skipped, ends one, whatever comes between."""
    driver = Driver()
    driver.tell(" ".join(events))
    taken = sum(event in ("S", "C", "Y") for event in events)
    skipped = events.count("K")
    assert sum(step["S"] for step in driver.steps) == driver.clock.optimizer_steps == taken
    assert sum(bool(step["skipped"]) for step in driver.steps) == skipped
    others = [step for step in driver.steps if not step["S"] and not step["skipped"]]
    assert len(driver.steps) == taken + skipped + len(others)
    # Only where weights were changed by hand does a step end without one.
    assert not others or "M" in events or events.count("B") >= PATIENCE
    assert driver.clock.step == driver.clock.totals["steps"] == len(driver.steps)


@given(EVENTS)
def test_every_call_and_every_pass_belongs_to_one_step(events):
    driver = Driver()
    driver.tell(" ".join(events))
    clock = driver.clock
    forwards = events.count("F") + 3 * events.count("C")
    backwards = events.count("B") + 3 * events.count("C")
    assert sum(step["F"] for step in driver.steps) + clock.forwards == forwards
    assert sum(step["B"] for step in driver.steps) + clock.backwards == backwards
    assert (clock.totals["forwards"], clock.totals["backwards"]) == (forwards, backwards)


@given(st.lists(st.sampled_from(["F", "B", "S", "Sb", "Z"])))
def test_of_two_optimizers_none_steps_twice_in_a_step(events):
    driver = Driver("ab")
    driver.tell(" ".join(events))
    counts = driver.clock.turns.counts
    assert counts[ord("a")] == events.count("S")
    assert counts[ord("b")] == events.count("Sb")
    assert all(step["S"] <= 2 for step in driver.steps)
    open_now = len(driver.clock.turns.taken)
    assert sum(step["S"] for step in driver.steps) + open_now == counts[97] + counts[98]


def test_it_imports_no_torch():
    source = "import sys, nethook.watching.clock.clock; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == 0
    # That this can fail:
    source = "import sys, nethook.watching.schedule; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == 1
