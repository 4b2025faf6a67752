"""The order of the loop's calls: an event at the first step, and when it changes."""

from __future__ import annotations

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
