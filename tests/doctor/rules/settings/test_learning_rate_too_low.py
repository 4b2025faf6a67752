"""The rule `learning-rate-too-low`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.ill import bad, flat, layers, stuck, well
from tests.doctor.synthetic import Made


def updates(ratio: float, gradient: float = 1.0) -> Made:
    return stuck().loop("update_ratio", ratio).loop("grad_norm", gradient).rate(*[1e-6] * 200)


def test_updates_that_change_next_to_nothing() -> None:
    (finding,) = updates(4e-5).found("learning-rate-too-low")
    assert "by 4e-05 of their size (1e-3 is usual)" in finding.message
    assert "The learning rate is 1e-06." in finding.message
    assert finding.fix.startswith("Raise the learning rate; 2.5e-05 would")
    assert not updates(5.1e-5).found("learning-rate-too-low")


def test_steps_that_are_tiny_beside_weights_that_have_exploded() -> None:
    exploded = updates(4e-13).loss(np.r_[2.3, 1e6, np.full(198, 1e12)])
    assert not exploded.found("learning-rate-too-low")


def test_a_rate_that_no_optimizer_tells() -> None:
    made = stuck().loop("update_ratio", 4e-5).loop("grad_norm", 1.0).loop("optimizer_steps", 0)
    (finding,) = made.found("learning-rate-too-low")
    assert "learning rate is" not in finding.message
    assert finding.fix.startswith("Raise the learning rate; 20 times as much would")


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


def scheduled(
    made: Made, *rates: float, turns: float = 1, planned: int = 0, **group: float
) -> Made:
    plans = [planned] if planned else []
    made.event("groups", optimizer="0", schedulers=["train.py:6"], planned=plans, groups=[group])
    return made.loop("schedules", turns).rate(*rates)


def test_a_lambda_that_returns_the_rate() -> None:
    squared = [4e-4 * 0.99**at for at in range(200)]
    (finding,) = scheduled(stuck(), *squared, initial_lr=0.02).found("learning-rate-too-low")
    assert finding.severity == "warning"
    assert "never above 0.0004, which is the square of the 0.02" in finding.message
    assert finding.lines == ("train.py:6",)
    (note,) = scheduled(well(), *squared, initial_lr=0.02).found("learning-rate-too-low")
    assert note.severity == "info"


def test_rates_that_are_no_square() -> None:
    for rates, base in (
        ([4e-4, *[0.02] * 199], 0.02),  # a warm-up that begins at a fiftieth
        ([0.02 * 0.97**at for at in range(200)], 0.02),
        ([4.1e-4] * 200, 0.02),
        ([1.0] * 200, 1.0),
    ):
        made = scheduled(stuck(), *rates, initial_lr=base)
        assert not made.found("learning-rate-too-low"), rates[:2]
    unscheduled = scheduled(stuck(), *[4e-4] * 200, turns=0, initial_lr=0.02)
    assert not unscheduled.found("learning-rate-too-low")


def cycle(turns: float = 0.04, planned: int = 200, highest: float = 0.008) -> Made:
    return scheduled(
        well(), 0.004, highest, turns=turns, planned=planned, initial_lr=0.004, max_lr=0.1
    )


def test_a_cycle_that_is_turned_once_an_epoch() -> None:
    (finding,) = cycle().found("learning-rate-too-low")
    assert (
        "laid out for 200 steps, and the optimizer made 200, but scheduler.step() was called 8"
        in (finding.message)
    )
    assert not cycle(turns=1).found("learning-rate-too-low")  # after each batch, and cut short
    assert not cycle(planned=8).found("learning-rate-too-low")  # laid out in epochs
    assert not cycle(planned=1000).found("learning-rate-too-low")  # the run ended early
    assert not cycle(highest=0.1).found("learning-rate-too-low")
    assert not cycle(planned=0).found("learning-rate-too-low")  # another scheduler


def descending(end: float, ratio: float, cosine: float, **group: object) -> Made:
    made = bad(np.linspace(2.6, end, 200)).loop("update_ratio", ratio).loop("grad_norm", 1.0)
    made.event("groups", optimizer="0", groups=[{"lr": 1e-3, **group}])
    made.rate(*[1e-3] * 200).parameter("a.weight")
    return made.series("a.weight", "update_cosine", mean=cosine)


def test_plain_descent_that_goes_straight_on() -> None:
    (finding,) = descending(2.35, 3e-4, 0.99).found("learning-rate-too-low")
    assert "in the direction of the one before (cosine 0.99)" in finding.message
    assert not descending(2.35, 3e-4, 0.8).found("learning-rate-too-low")
    assert not descending(2.35, 6e-4, 0.99).found("learning-rate-too-low")
    assert not descending(0.4, 3e-4, 0.99).found("learning-rate-too-low")  # it does its job


def test_momentum_makes_updates_alike() -> None:
    assert not descending(2.35, 3e-4, 0.99, momentum=0.9).found("learning-rate-too-low")
    assert not descending(2.35, 3e-4, 0.99, betas=[0.9, 0.999]).found("learning-rate-too-low")
