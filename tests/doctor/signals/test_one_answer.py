"""Whether a network came to one answer."""

from __future__ import annotations

from nethook.doctor.signals.one_answer import one_answer
from tests.doctor.synthetic import Made


def answered(given: list[int], wanted: list[int], steps: int = 6) -> bool:
    made = Made().record(*range(steps), argmax_counts=given, class_counts=wanted)
    return one_answer(made.history(None))


def test_one_answer_for_several_classes() -> None:
    assert answered([0, 64, 0], [20, 22, 22])
    assert not answered([20, 24, 20], [20, 22, 22])
    assert not answered([0, 64, 0], [4, 60, 0])  # nearly all targets are of that class
    assert not answered([0, 64, 0], [20, 22, 22], steps=3)
    assert not answered([0, 0, 0], [20, 22, 22])
    assert not one_answer(Made().record(0, 1, 2, 4).history(None))
