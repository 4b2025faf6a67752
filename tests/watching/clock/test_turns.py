"""The turns of optimizers: who takes part in a step is learned from the steps."""

from __future__ import annotations

from nethook.watching.clock.turns import NOBODY, Turns


def turns(*keys: int) -> Turns:
    made = Turns()
    for key in keys:
        made.join(key)
    return made


def test_a_step_is_over_when_all_that_take_part_have_had_their_turn():
    made = turns(1, 2)
    assert not made.is_last(1)
    made.taken = frozenset({1})
    assert made.is_last(2)


def test_one_that_is_gone_is_not_waited_for():
    made = turns(1, 2)
    assert made.is_last(1, gone=[2])
    made.leave(2)
    assert made.is_last(1)


def test_once_is_an_accident_and_twice_in_a_row_is_how_the_loop_is_written():
    made = turns(1, 2)
    made.taken = frozenset({1})
    made.cut_short()
    made.taken = NOBODY
    assert not made.is_last(1)
    made.taken = frozenset({1})
    made.cut_short()
    made.taken = NOBODY
    assert made.is_last(1)


def test_of_steps_inside_each_other_the_first_is_the_outermost():
    made = turns(1)
    assert [made.begins(), made.begins()] == [True, False]
    made.ends()
    made.ends()
    made.ends()
    assert made.inside == 0


def test_a_step_that_was_interrupted_names_its_optimizer_once():
    made = turns(1)
    made.begins()
    made.begun = 1
    assert made.interrupted(1) is None  # one inside it
    assert made.interrupted(0) == 1
    assert made.interrupted(0) is None


def test_another_optimizer_with_the_same_key_counts_from_nothing():
    made = turns(1)
    made.counts[1] = 5
    made.join(1)
    assert made.counts == {1: 0}
