"""How answers and targets go together in evaluations."""

from __future__ import annotations

from typing import Any

import pytest

from nethook.doctor.signals.evaluated import FEWEST, answers, every_answer
from tests.doctor.synthetic import Made

EVEN = [10] * 10


def classified(
    accuracy: float,
    said: list[int] = EVEN,
    wanted: list[int] = EVEN,
    trained: float = 0.98,
    known: list[int] = EVEN,
) -> Made:
    made = Made(200).loss([1.0] * 200)
    facts: dict[str, Any] = {"kind": "cross_entropy", "source": "train.py:10"}
    made.record(*range(0, 200, 20), **facts, accuracy=trained, class_counts=known,
                argmax_counts=known)  # fmt: skip
    return made.record(
        50, 100, 199, name="eval", phase="eval", **facts, accuracy=accuracy, class_counts=wanted,
        argmax_counts=said,
    )  # fmt: skip


def regressed(correlation: float, std: float = 1.0, mean: float = 0.0, rows: int = 64) -> Made:
    made = Made(200).loss([1.0] * 200)
    target = {"std": 1.0, "mean": 0.0, "shape": [rows]}
    facts: dict[str, Any] = {"kind": "mse", "source": "train.py:10", "target": target}
    made.record(*range(0, 200, 20), **facts, correlation=0.97, prediction=target)
    said = {"std": std, "mean": mean, "shape": [rows]}
    return made.record(
        50, 100, 199, name="eval", phase="eval", **facts, correlation=correlation, prediction=said
    )


def codes(made: Made, code: str) -> list[str]:
    return [finding.severity for finding in made.found(code)]


def test_answers_of_other_samples() -> None:
    told = answers(classified(0.08).history())
    assert told is not None
    assert told.by_chance
    assert told.alike
    assert (told.rows, told.chance) == (100, pytest.approx(0.1))
    (finding,) = classified(0.08).found("target-misaligned")
    assert finding.severity == "warning"
    assert "8% of 100 answers are right, where 10% would be by chance, and 98%" in finding.message
    assert finding.lines == ("train.py:10",)


def test_numbers_of_other_samples() -> None:
    (finding,) = regressed(0.02).found("target-misaligned")
    assert "a correlation of 0.02, and of 0.97 in training" in finding.message


@pytest.mark.parametrize(
    "made",
    [
        classified(0.6),  # worse than training, and far from chance
        classified(0.25),  # much worse, and not by chance
        classified(0.1, trained=0.15),  # nothing is learnt in training either
        classified(0.1, said=[100] + [0] * 9),  # one answer for all: inputs of another scale, say
        classified(0.1, said=[5] * 2 + [0] * 8, wanted=[1] * 10),  # too few to tell
        regressed(0.6),
        regressed(0.1, std=20.0),  # on another scale
        regressed(0.1, mean=3.0),
        regressed(0.1, rows=FEWEST - 1),
        regressed(0.3, rows=30),  # so much is chance, or is not
    ],
    ids=range(10),
)
def test_evaluations_that_are_merely_bad(made: Made) -> None:
    if made.history().records("eval")[0].fact("correlation") == 0.3:
        assert codes(made, "target-misaligned") == ["warning"]
    else:
        assert not made.found("target-misaligned")


def test_classes_that_training_never_had() -> None:
    first, last = [20] * 5 + [0] * 5, [0] * 5 + [20] * 5
    made = classified(0.0, said=first, wanted=last, known=first)
    (finding,) = made.found("unshuffled-data")
    assert finding.severity == "warning"
    assert "100% of the targets in the evaluation (train.py:10)" in finding.message
    assert not made.found("target-misaligned")


def test_classes_that_are_rare_or_come_later() -> None:
    rare = [33] * 3 + [1] + [0] * 6
    assert not classified(0.9, said=rare, wanted=rare, known=[33] * 3 + [0] * 7).found(
        "unshuffled-data"
    )
    some = classified(0.7, wanted=EVEN, known=[12] * 8 + [0] * 2)
    assert not some.found("unshuffled-data")  # two of ten: less than the limit
    assert not classified(0.9).found("unshuffled-data")


def test_too_little_is_known() -> None:
    assert answers(Made(200).loss([1.0] * 200).history()) is None
    assert answers(classified(0.1, wanted=[2] * 10, said=[2] * 10).history()) is None


def scored(made: Made, accuracy: float, name: str = "train.py:20", **facts: Any) -> Made:
    """Evaluations that compare answers with labels."""
    facts = {"class_counts": EVEN, "argmax_counts": EVEN, "training": [False]} | facts
    return made.record(
        50, 100, 150, 199, name=name, phase="eval", kind="equal", source=name, accuracy=accuracy,
        **facts,
    )  # fmt: skip


def trained() -> Made:
    made = Made(200).loss([1.0] * 200)
    return made.record(*range(0, 200, 20), kind="cross_entropy", source="train.py:10",
                       accuracy=0.98, class_counts=EVEN, argmax_counts=EVEN)  # fmt: skip


def test_answers_that_are_compared() -> None:
    (finding,) = scored(trained(), 0.08).found("target-misaligned")
    assert (finding.severity, finding.lines) == ("warning", ("train.py:20",))
    assert not codes(scored(trained(), 0.9), "target-misaligned")


def test_one_of_several_lines_is_a_question() -> None:
    made = scored(scored(trained(), 0.95), 0.08, "train.py:30")
    assert [told.by_chance for told in every_answer(made.history())] == [False, True]
    (finding,) = made.found("target-misaligned")
    assert (finding.severity, finding.lines) == ("info", ("train.py:30",))


def test_answers_that_avoid_their_labels_are_of_an_attack() -> None:
    wide = [40] * 5
    made = Made(200).loss([1.0] * 200).record(
        *range(0, 200, 20), kind="cross_entropy", source="train.py:10", accuracy=0.98,
        class_counts=wide, argmax_counts=wide,
    )  # fmt: skip
    made = scored(made, 0.02, class_counts=wide, argmax_counts=wide)
    told = answers(made.history())
    assert told is not None
    assert told.below_chance
    assert not codes(made, "target-misaligned")


def test_classes_that_have_other_numbers() -> None:
    renamed = {"renamed": 0.95, "renaming": [[1, 2], [2, 1]]}
    (finding,) = scored(trained(), 0.3, **renamed).found("target-misaligned")
    assert finding.severity == "warning"
    assert "95% would be if classes had other numbers (1 for 2, 2 for 1)" in finding.message
    assert not codes(scored(trained(), 0.8, **renamed), "target-misaligned")
    assert not codes(scored(trained(), 0.3, **renamed | {"renamed": 0.5}), "target-misaligned")


def test_of_two_classes_and_one_output() -> None:
    made = Made(200).loss([1.0] * 200)
    made.record(*range(0, 200, 20), kind="bce_with_logits", source="train.py:10", accuracy=0.97)
    two = {"class_counts": [50, 50], "argmax_counts": [48, 52]}
    told = answers(scored(made, 0.5, **two).history())
    assert told is not None
    assert told.by_chance
    turned = scored(made, 0.04, **two, renamed=0.96, renaming=[[0, 1], [1, 0]])
    assert "info" in codes(turned, "target-misaligned")
