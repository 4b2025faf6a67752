"""Which line calls `backward` next."""

from __future__ import annotations

from nethook.watching.examinations.turns import FIRST, MOST_EXAMS, MOST_TRIES, PATIENCE, Turns

A, B = ("train.py", 1), ("train.py", 2)


def step(turns: Turns, place=A, calls: int = 1) -> list[bool]:
    """Calls of a model and a backward pass; whether each call was wanted."""
    wanted = []
    for _ in range(calls):
        turns.calls += 1
        wanted.append(turns.wanted)
    turns.begins(place, f"{place[0]}:{place[1]}")
    return wanted


def test_the_third_pass_of_a_line():
    turns = Turns()
    assert [step(turns) for _ in range(3)] == [[False], [False], [True]]
    assert not turns.over


def test_the_last_of_several_calls():
    turns = Turns()
    for _ in range(FIRST):
        step(turns, calls=3)
    assert step(turns, calls=3) == [False, False, True]


def test_two_lines_take_turns():
    turns = Turns()
    for _ in range(FIRST):
        step(turns, A)
        step(turns, B)
    turns.lines[A].done = True
    assert step(turns, A) == [False]
    assert step(turns, B) == [True]


def test_over_when_every_line_is_done():
    turns = Turns()
    assert not turns.over
    step(turns)
    turns.lines[A].done = True
    assert turns.over
    step(turns, B)
    assert not turns.over
    turns.lines[B].tries = MOST_TRIES
    assert turns.over
    turns.again(all_lines=True)
    assert not turns.over


def test_a_rare_line_is_not_waited_for():
    turns = Turns()
    step(turns, B)
    step(turns)
    turns.lines[A].done = True
    for _ in range(PATIENCE):
        step(turns)
    assert turns.over
    turns.again(all_lines=False)
    assert not turns.over


def test_no_more_than_a_few():
    turns = Turns()
    for _ in range(5):
        step(turns)
    turns.exams = MOST_EXAMS
    assert turns.over
    assert step(turns) == [False]


def test_why_never():
    turns = Turns()
    assert turns.why_never == "no backward pass was seen"
    step(turns)
    assert "more than 2 backward passes" in turns.why_never
    step(turns)
    step(turns)
    assert "not" in turns.why_never or "no watched model" in turns.why_never
