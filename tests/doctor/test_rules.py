"""Each rule on runs made of numbers: it fires, stays silent, waits, copes with what is missing."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from nethook.doctor.rules import own_rules
from nethook.doctor.settings import Settings
from tests.doctor.ill import HEALTHY, ILL, bad, decay, stuck
from tests.doctor.synthetic import Made, rule_of

CODES = sorted(rule.code for rule in own_rules())
SILENT = [(code, at) for code in CODES for at in range(len(HEALTHY[code]))]
AT_ONCE = {  # decided by what a network and its loss are made of
    "softmax-before-cross-entropy",
    "loss-broadcast",
    "loss-target-mismatch",
    "negative-loss",
    "output-range",
    "symmetric-init",
    "missing-activation",
    "batchnorm-small-batch",
    "non-finite",
}
COUNTED = {  # by facts of the whole run: see `HEALTHY` for those that have too few
    "no-gradient",
    "optimizer-misses-parameters",
    "replica-divergence",
    "train-mode-evaluation",
}
DECIDED = {  # codes that need no course of the loss: calls, records or batches decide
    "missing-step",
    "loss-broadcast",
    "softmax-before-cross-entropy",
    "negative-loss",
    "output-range",
    "loss-target-mismatch",
    "non-finite",
    "symmetric-init",
    "missing-activation",
    "no-gradient",
    "optimizer-misses-parameters",
    "batchnorm-small-batch",
    "eval-mode-training",
    "unused-module",
    "train-mode-evaluation",
    "unscaled-accumulation",
    "replica-divergence",
    "clipped-before-unscale",
    "gradient-wiped",
    "missing-zero-grad",
    "repeated-batch",
    "class-collapse",
    "scheduler-collapse",
    "exploding-gradient",
    "input-ignored",
}


def test_every_code_has_its_runs() -> None:
    assert sorted(ILL) == sorted(HEALTHY) == CODES


@pytest.mark.parametrize("code", CODES)
def test_a_rule_finds_its_fault(code: str) -> None:
    (finding,) = ILL[code]().found(code)
    assert finding.message
    assert finding.fix
    assert finding.evidence
    assert 0 <= finding.first_step <= finding.last_step <= 199


@pytest.mark.parametrize("code", CODES)
def test_a_rule_finds_its_fault_in_thinned_data(code: str) -> None:
    assert ILL[code]().thin(16).found(code)


@pytest.mark.parametrize(("code", "at"), SILENT)
def test_a_rule_is_silent(code: str, at: int) -> None:
    assert not HEALTHY[code][at]().found(code)


@pytest.mark.parametrize("code", CODES)
def test_nothing_is_said_of_an_empty_run(code: str) -> None:
    empty = Made(0)
    empty._series.clear()
    assert not empty.found(code)


@pytest.mark.parametrize("code", sorted(set(CODES) - DECIDED))
def test_the_first_steps_of_a_loss_are_not_enough(code: str) -> None:
    made = ILL[code]()
    for (address, _, _), series in made._series.items():
        if address.startswith("@loss"):  # the course of the run has only begun
            series.seen[4:] = 0
    assert not made.found(code)


@pytest.mark.parametrize("code", sorted(set(CODES) - AT_ONCE - COUNTED))
def test_a_rule_is_patient(code: str) -> None:
    """One step is enough for what the first forward shows, and for nothing else."""
    assert not ILL[code]().found(code, until=0)
    assert ILL[code]().found(code, until=199)


MISSING = [(rule.code, field) for rule in own_rules() for field in rule.reads]


@pytest.mark.parametrize(("code", "field"), MISSING, ids=str)
def test_a_rule_copes_with_a_field_that_is_missing(code: str, field: str) -> None:
    """From an older file, say: it may find less, and does not fail."""
    for finding in ILL[code]().without(field).found(code):
        assert finding.message


@pytest.mark.parametrize("code", CODES)
def test_a_rule_alone_speaks_of_its_fault(code: str) -> None:
    """No other rule fails on the run of another's fault, nor reads what it does not name."""
    for other in CODES:
        made = ILL[code]()
        rule = rule_of(other)
        history = made.history()
        list(rule.look(history, rule.defaults))
        assert history.read <= set(rule.reads), (other, history.read - set(rule.reads))


def test_a_threshold_can_be_changed() -> None:
    made = ILL["dead-units"]
    assert made().found("dead-units", share=0.7)
    assert not made().found("dead-units", share=0.9)


def test_settings_add_up() -> None:
    project = Settings(frozenset({"a"}), {"dead-units": {"share": 0.1, "error": 0.9}})
    both = project.also(["b"], {"dead-units": {"share": 0.5}})
    assert both.ignore == {"a", "b"}
    assert both.thresholds == {"dead-units": {"share": 0.5, "error": 0.9}}


def test_messages_have_the_numbers_and_addresses_of_the_run() -> None:
    texts = {code: ILL[code]().found(code)[0].message for code in CODES}
    assert texts["dead-units"].startswith(
        "`act`: 80 of 100 units have been dead since the first step"
    )
    assert "mean 120 and spread 60" in texts["input-not-normalized"]
    assert "`a` and `b`" in texts["missing-activation"]
    assert "by 40.0% of their size" in texts["learning-rate-too-high"]
    assert "`a.weight`" in texts["optimizer-misses-parameters"]
    assert "step 57 from `log`: log of 0" in texts["non-finite"]
    assert "(32, 1)" in texts["loss-broadcast"]
    assert "(32,)" in texts["loss-broadcast"]


def test_a_loss_that_is_maximised_by_an_option() -> None:
    made = Made().record(kind="mse", value=3.0).event("groups", groups=[{"maximize": True}])
    (finding,) = made.found("negative-loss")
    assert "maximize=True" in finding.message


def test_a_rate_that_spoils_a_run_in_two_steps() -> None:
    losses = np.r_[2.3, 1e30, np.full(30, np.nan)]
    made = Made(32).loss(losses).loop("update_ratio", np.r_[4e5, np.full(31, np.nan)])
    (finding,) = made.found("learning-rate-too-high")
    assert "by 4e+05 times their size" in finding.message
    assert "the loss began at 2.3 and is not finite at the end" in finding.message


def test_classes_of_which_no_batch_has_all() -> None:
    target = {"shape": [16, 1], "distinct": 7, "min": 0.0, "max": 8.0, "std": 2.8, "integral": True}
    made = Made()
    for step, most in enumerate([8.0, 9.0, 7.0, 9.0]):
        made.record(step, kind="mse", prediction={"shape": [16, 1]}, target={**target, "max": most})
    (finding,) = made.found("loss-target-mismatch")
    assert "the numbers of 10 classes" in finding.message


def test_the_error_of_a_bounded_output_tells_of_targets_that_were_not_kept() -> None:
    made = Made().record(kind="l1", chain=["Abs", "Sub", "Tanh"], value=28.0, target={})
    (finding,) = made.found("output-range")
    assert "28 away" in finding.message
    assert (
        not Made().record(kind="l1", chain=["Abs", "Sub", "Tanh"], value=1.0).found("output-range")
    )


def test_functions_count_as_activations() -> None:
    made = stuck()
    made.info["ops"] = [
        {"site": "a", "op": "linear", "linear": True, "from": []},
        {"site": "", "op": "tanh", "from": [0]},
        {"site": "b", "op": "linear", "linear": True, "from": [1]},
    ]
    for site in ("a", "b"):
        made.module(site, activation="linear").series(site, "outputs", mean=0.0, std=40.0, max=9.0)
    (finding,) = made.found("saturated-activation")
    assert finding.sites == ("a",)
    assert finding.evidence["share near the ends"].value == pytest.approx(
        2 * (1 - NormalDist(0, 40).cdf(2.0923)), abs=1e-6
    )


def test_an_optimizer_with_a_decay_that_outweighs_all_else() -> None:
    made = decay(10.0).rate(*[0.003] * 200).loop("update_ratio", 0.031)
    made.series("fc.weight", "params", rms=np.geomspace(1.0, 0.7, 200))
    (finding,) = made.found("weight-decay-too-strong")
    assert finding.evidence["decay by the whole update"].value > 0.9
    assert (
        not decay(10.0)
        .rate(*[0.003] * 200)
        .loop("update_ratio", 0.3)
        .series("fc.weight", "params", rms=np.geomspace(1.0, 0.7, 200))
        .found("weight-decay-too-strong")
    )


def test_a_loss_that_swings_to_the_last_and_ends_low_by_chance() -> None:
    swings = np.exp(2.5 * np.sin(np.arange(200) / 6)) * 5
    losses = np.r_[21.0, swings[:190], np.full(9, 0.4)]
    made = Made().loss(losses).record(kind="mse", floored=True)
    made.parameter("w").series("w", "update_cosine", mean=-0.99)
    assert made.found("oscillating-loss")
    made.series("w", "update_cosine", mean=-0.1)
    assert not made.found("oscillating-loss")


def test_a_loss_that_follows_a_target_which_moves_does_not_oscillate() -> None:
    swings = np.exp(np.sin(np.arange(200) / 6)) * 0.3
    made = Made().loss(swings).record(kind="smooth_l1", floored=True)
    made.parameter("w").series("w", "update_cosine", mean=0.2)
    assert made.found("oscillating-loss")
    made.series("w", "update_cosine", mean=0.98)  # as in Q-learning, with a target network
    assert not made.found("oscillating-loss")


def test_a_short_run_that_begins_where_another_ended_is_a_note() -> None:
    def severity(steps: int, **facts: object) -> str:
        losses = 1.1 + np.resize([0.0, 0.2, -0.2, 0.1, -0.1], steps)
        made = Made(steps).loss(losses).record(floored=True, **facts)
        (finding,) = made.found("not-learning")
        return finding.severity

    assert severity(150, kind="unknown") == "info"
    assert severity(800, kind="unknown") == "error"


def test_a_first_step_larger_than_the_weights_is_the_cause_of_what_follows() -> None:
    leap = np.concatenate(([2.35, 50.0, 23.0, 18.0, 13.0, 9.0, 6.0], np.full(193, 2.2)))
    leap += np.random.default_rng(0).normal(0, 0.05, 200)
    ratio = np.concatenate(([3.0, 0.66, 0.37, 0.26], np.full(196, 0.004)))
    assert [f.code for f in bad(leap).loop("update_ratio", ratio).found("learning-rate-too-high")]
    calm = np.linspace(2.35, 2.0, 200) + 0.01 * np.sin(np.arange(200))  # no leap
    assert not bad(calm).loop("update_ratio", ratio).found("learning-rate-too-high")
    learns = np.concatenate((leap[:7], np.geomspace(2.2, 0.05, 193)))
    assert not bad(learns).loop("update_ratio", ratio).found("learning-rate-too-high")
