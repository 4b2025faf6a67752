"""Whether a run does its job."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.doctor.signals.progress import constant_score, progress
from tests.doctor.synthetic import LOSS, Made, falling, flat

BALANCED = {"kind": "cross_entropy", "class_counts": [16] * 10, "floored": True}


def test_a_loss_that_falls() -> None:
    went = progress(Made(200).loss(falling(200)).history())
    assert went is not None
    assert went.improves
    assert went.does_its_job
    assert went.does_well
    assert not went.diverges


@pytest.mark.parametrize("seed", range(8))
def test_noise_is_no_progress(seed: int) -> None:
    went = progress(Made(200).loss(flat(200, seed=seed)).record(floored=True).history())
    assert went is not None
    assert not went.improves
    assert not went.diverges


def test_a_fall_to_the_entropy_of_the_targets_is_nothing_learnt() -> None:
    made = Made(200).loss(falling(200, 2.9, 2.303, noise=0.01)).record(**BALANCED)
    went = progress(made.history())
    assert went is not None
    assert went.constant == pytest.approx(np.log(10), abs=0.01)
    assert went.learnt_nothing
    assert not went.improves


def test_a_loss_that_is_still_on_its_way_is_not_judged_by_the_entropy() -> None:
    course = np.linspace(6.0, 2.4, 200) + 0.01 * np.random.default_rng(0).standard_normal(200)
    went = progress(Made(200).loss(course).record(**BALANCED).history())
    assert went is not None
    assert went.improves


def test_the_variance_is_what_a_constant_scores() -> None:
    target = {"shape": [32, 1], "mean": 3.0, "std": 2.0}
    made = Made().record(kind="mse", target=target)
    assert constant_score(made.history(), LOSS) == pytest.approx(4.0)
    assert constant_score(Made().record(kind="mse", factor=0.5).history(), LOSS) is None


def test_targets_of_several_classes_have_no_entropy() -> None:
    target = {"min": 0.0, "max": 1.0, "row_sums": [1.0, 1.0]}
    one = Made().record(kind="cross_entropy", class_counts=[40, 40], target=target)
    assert constant_score(one.history(), LOSS) == pytest.approx(0.69, abs=0.01)
    several = {**target, "row_sums": [1.0, 3.0]}
    some = Made().record(kind="cross_entropy", class_counts=[40, 40], target=several)
    assert constant_score(some.history(), LOSS) is None


def test_losses_that_play_against_each_other_are_not_judged() -> None:
    made = Made(100).loss(falling(100)).loss(flat(100), "train.py:20")
    assert progress(made.history()) is None


def test_a_loss_around_zero_without_a_floor_says_nothing() -> None:
    made = Made(200).loss(flat(200, 0.0, 0.3)).record(floored=False)
    assert progress(made.history()) is None


def test_nothing_is_said_of_a_few_steps() -> None:
    assert progress(Made(8).loss(falling(8)).history()) is None
    assert progress(Made(8).history()) is None


def test_a_loss_that_is_not_finite_diverges() -> None:
    values = falling(100)
    values[40:] = np.nan
    went = progress(Made(100).loss(values).record(floored=True).history())
    assert went is not None
    assert went.diverges
    assert not went.improves


def test_a_spike_in_the_second_step_is_not_the_start() -> None:
    values = flat(100, 2.3)
    values[1:4] = 8000.0
    went = progress(Made(100).loss(values).record(floored=True).history())
    assert went is not None
    assert went.start < 3
    assert not went.improves


def test_rules_share_it_and_each_of_them_has_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import nethook.doctor.signals.progress as module

    asked = []
    real = module.progress_of
    monkeypatch.setattr(module, "progress_of", lambda *args: asked.append(1) or real(*args))
    history = Made(200).loss(falling(200)).record(**BALANCED).history()
    history.loop("forwards")
    before = set(history.read)
    first = progress(history)
    fields = history.read - before
    assert fields
    history.read.clear()
    assert progress(history) is first
    assert asked == [1]
    assert history.read == fields


def test_an_error_in_what_is_shared_is_every_rules_own() -> None:
    history = Made(20).history()
    history.info("torch")

    def fails(_: object) -> None:
        history.info("started")
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            history.once("x", fails)
    assert history.read == {"info.torch"} | {"info.started"}
