"""Where copies of weights go, and whose turn it is."""

from __future__ import annotations

from nethook.watching.measuring.parameter_numbers.weight_copies import WeightCopies


def test_copies_of_weights_take_turns_under_a_cap():
    copies = WeightCopies([64, 64, 100, 1000], cap=200)
    assert copies.turns == 2
    turns = []
    for _ in range(4):
        copies.turn()
        turns.append((copies.current > 0).tolist())
    assert turns == [
        [True, True, False, False],
        [False, False, True, False],
        [True, True, False, False],
        [False, False, True, False],
    ]  # the last is larger than the cap
    assert copies.memory <= 200
    assert (copies.current % 64 == 0).all()


def test_one_turn_is_told_once():
    copies = WeightCopies([100, 28], cap=1000)
    assert copies.turn()
    places = copies.current.copy()
    assert not copies.turn()
    assert (copies.current == places).all()
    assert places[1] - places[0] == 128  # whole lines of the processor's memory


def test_without_room_or_parameters_there_is_one_empty_turn():
    for copies in (WeightCopies([100], cap=64), WeightCopies([], cap=64)):
        assert (copies.turns, copies.memory) == (1, 0)
        assert copies.turn()
        assert not copies.current.any()
