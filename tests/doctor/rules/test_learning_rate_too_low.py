"""The rule `learning-rate-too-low`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import flat, layers, stuck, well
from tests.doctor.synthetic import Made


def updates(ratio: float, gradient: float = 1.0) -> Made:
    return stuck().loop("update_ratio", ratio).loop("grad_norm", gradient).rate(*[1e-6] * 200)


def test_updates_that_change_next_to_nothing() -> None:
    (finding,) = updates(4e-5).found("learning-rate-too-low")
    assert "by 4e-05 of their size (1e-3 is usual)" in finding.message
    assert "The learning rate is 1e-06." in finding.message
    assert finding.fix.startswith("Raise the learning rate; 2.5e-05 would")
    assert not updates(5.1e-5).found("learning-rate-too-low")


def rising(made: Made, *rates: float) -> Made:
    each = 200 // len(rates)
    return made.loop("schedules", 1).rate(*[rate for rate in rates for _ in range(each)])


def test_a_warm_up_that_the_run_does_not_reach_the_end_of() -> None:
    steps = [0.0, 1e-4, 2e-4, 3e-4, 4e-4, 5e-4, 6e-4, 7e-4]
    (finding,) = rising(stuck(), *steps).found("learning-rate-too-low")
    assert "from 0 to 0.0007 in 7 changes over 200 steps" in finding.message
    assert not rising(well(), *steps).found("learning-rate-too-low")
    assert not rising(stuck(), *steps[:5], *steps[:3]).found("learning-rate-too-low")
    assert not rising(stuck(), *steps[:4]).found("learning-rate-too-low")  # too few changes
    search = [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    assert not rising(stuck(), *search).found("learning-rate-too-low")
    early = rising(stuck(), *[rate * 1e-3 for rate in range(40)])
    late = Made(200).loss(flat(200, 2.31)).loop("schedules", 1)
    assert early.found("learning-rate-too-low")
    assert not late.rate(*[1e-3 * at for at in range(20)], *[2e-2] * 180).found(
        "learning-rate-too-low"
    )


def test_gradients_that_are_not_there() -> None:
    assert updates(1e-7, 1.1e-6).found("learning-rate-too-low")
    assert not updates(1e-7, 0.9e-6).found("learning-rate-too-low")


def test_gradients_that_fade_are_the_cause() -> None:
    assert not layers(updates(1e-7), a=1e-9, b=1e-5, c=1.0).found("learning-rate-too-low")


def test_what_one_batch_shows_is_said_where_it_agrees() -> None:
    facts = {
        "steps": 15, "before": 2.3, "after": 2.3, "optimizer": "SGD", "rate": 1e-6,
        "adam_rate": 1e-3,
    }  # fmt: skip
    for adam, said in ((1.1, True), (2.3, False)):
        made = updates(4e-5).examined("it can learn at all", "fine", adam=adam, **facts)
        (finding,) = made.found("learning-rate-too-low")
        assert finding.message.endswith("and to 1.1 with Adam (lr=0.001).") is said
        assert ("after 15 steps with SGD (lr=1e-06)" in finding.evidence) is said
