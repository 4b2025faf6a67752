"""The rule `target-misaligned`: when it reports, and what it says."""

from __future__ import annotations

from tests.doctor.synthetic import Made

NAME = "predictions line up with targets"


def test_samples_beside_the_targets_of_others() -> None:
    made = Made().examined(
        NAME, sample=8, samples=32, samples_beside=4, beside=[0, 1, 2, 3], lines=["train.py:30"]
    )
    (finding,) = made.found("target-misaligned")
    assert "from sample 8 of 32 is compared with the targets of 4 samples (0, 1, 2, 3)" in (
        finding.message
    )
    assert finding.lines == ("train.py:30",)
    assert finding.severity == "error"


def test_positions_beside_the_targets_of_others() -> None:
    made = Made().examined(NAME, positions=40, position=6, made_of=[18, 19, 20])
    (finding,) = made.found("target-misaligned")
    assert "beside the target of position 6 is made of the model's output at 18, 19, 20 of 40" in (
        finding.message
    )


def test_what_was_examined_late_did_not_begin_before() -> None:
    early = Made().examined(NAME, step=2, positions=40, position=6, made_of=[1])
    late = Made().examined(NAME, step=150, positions=40, position=6, made_of=[1])
    assert early.found("target-misaligned")[0].first_step == 2
    assert late.found("target-misaligned")[0].first_step == 150


def taught(agreement: float, rows: float = 64) -> Made:
    teacher = {"agreement": agreement, "chance": 0.1, "rows": rows}
    return Made().record(kind="cross_entropy", teacher=teacher, source="train.py:9")


def test_a_teacher_that_speaks_of_other_samples() -> None:
    (finding,) = taught(0.11).found("target-misaligned")
    assert finding.severity == "error"
    assert "the same class for 11% of 320 samples, where 10% would be chance" in finding.message
    assert finding.lines == ("train.py:9",)
    assert not taught(0.4).found("target-misaligned")
    assert not taught(0.11, rows=39).found("target-misaligned")


def test_copies_of_samples_whose_targets_lie_otherwise() -> None:
    facts = {"copies": 4, "own": 0.14, "other": 0.41, "chance": 0.13, "lines": ["train.py:9"]}
    for laid, there in (("tiles", "(a, b, a, b), and"), ("runs", "(a, a, b, b), and")):
        made = Made(40).examined("predictions line up with targets", laid=laid, **facts)
        (finding,) = made.found("target-misaligned")
        assert finding.severity == "error"
        assert there in finding.message
        assert "4 times" in finding.message
        assert "41% agree" in finding.message
