"""The order of the loop's calls: an event at the first step, and when it changes."""

from __future__ import annotations

import random

import pytest

from nethook.watching.clock.call_order import CallOrder, _shortened
from tests.watching.fakes import Writer


def run(steps: list[list[str]]) -> list[tuple[int, list[str]]]:
    """Steps of which each is a list of calls; the events, as (step, calls)."""
    writer = Writer()
    order = CallOrder(writer)
    for number, calls in enumerate(steps):
        for call in calls:
            order.note(call)
            if call == "step":
                order.step_ended(number)
    order.finish()
    return [(step, data["calls"]) for _, step, _, _, data in writer.events]


LOOP = ["zero_grad", "forward", "backward", "step"]


def test_the_first_step_is_told_and_the_same_order_is_not_told_again():
    assert run([LOOP] * 5) == [(0, LOOP)]


def test_another_order_is_told_once_even_if_loops_take_turns():
    other = ["zero_grad", "forward", "backward", "clip", "step"]
    assert run([LOOP, other, LOOP, other, LOOP]) == [(0, LOOP), (1, other)]


def test_what_comes_after_a_step_belongs_to_it():
    assert run([[*LOOP, "schedule"]] * 3) == [(0, [*LOOP, "schedule"])]


def test_a_call_that_is_repeated_stands_once():
    assert run([["forward", "forward", "backward", "step"]]) == [
        (0, ["forward", "backward", "step"])
    ]


def test_accumulation_of_any_length_is_one_order():
    def accumulated(times: int) -> list[str]:
        return ["zero_grad", *["forward", "backward"] * times, "step"]

    assert run([accumulated(4), accumulated(2), accumulated(7)]) == [(0, LOOP)]


def test_no_more_than_64_orders_are_told():
    steps = [["forward", f"call {number}", "backward", "step"] for number in range(100)]
    assert len(run(steps)) == 64


@pytest.mark.parametrize(
    ("calls", "short"),
    [
        ([], []),
        (["a"], ["a"]),
        (["a", "b"], ["a", "b"]),
        (["a", "b", "a", "b"], ["a", "b"]),
        (["x", "a", "b", "a", "b", "a", "b", "y"], ["x", "a", "b", "y"]),
        (["a", "b", "a"], ["a", "b", "a"]),
    ],
)
def test_repeated_pairs_stand_once(calls, short):
    assert _shortened(calls) == short


def test_the_line_of_a_call_is_told_with_the_order():
    writer = Writer()
    order = CallOrder(writer)
    order.note_with_line("zero_grad")
    order.step_ended(0)
    order.finish()
    (event,) = writer.events
    name, _, line = event[-1]["lines"]["zero_grad"].rpartition(":")
    assert name == __file__
    assert int(line) > 0


def told(entries: list[str | int], settled: set[int]) -> list[tuple[int, list[str]]]:
    """The events of calls and ends of steps, looked at after some of the entries."""
    writer = Writer()
    order = CallOrder(writer)
    for position, entry in enumerate(entries):
        order.note(entry)
        if position in settled:
            order.settle()
    order.finish()
    return [(step, data["calls"]) for _, step, _, _, data in writer.events]


@pytest.mark.parametrize("seed", range(20))
def test_steps_that_are_looked_at_together_are_told_as_one_by_one(seed):
    rng = random.Random(seed)
    usual = [*LOOP[:3], *["clip"] * (seed % 2), "step"]
    entries: list[str | int] = []
    for step in range(40):
        calls = list(usual)
        if rng.random() < 0.3:  # something else: more, fewer or repeated calls
            at = rng.randrange(len(calls))
            calls[at:at] = rng.choices(["zero_grad", "forward", "backward", "clip"], k=2)
        if rng.random() < 0.1:
            del calls[rng.randrange(len(calls))]
        entries += [*calls, step, *["schedule"] * (seed % 3 > 0)]
        if rng.random() < 0.05:
            entries.append(step)  # after an interrupt
    one_by_one = told(entries, set(range(len(entries))))
    assert len(one_by_one) > 1
    assert told(entries, set()) == one_by_one
    assert told(entries, {at for at in range(len(entries)) if rng.random() < 0.1}) == one_by_one
