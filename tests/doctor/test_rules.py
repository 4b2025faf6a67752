"""Each rule on runs made of numbers: it fires, stays silent, waits, copes with what is missing."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.doctor.rules import own_rules
from tests.doctor.ill import CLASSES, HEALTHY, ILL, Run, bad, frozen_end, misspelt, modes
from tests.doctor.synthetic import Made, flat, rule_of

CODES = sorted(rule.code for rule in own_rules())
SILENT = [(code, at) for code in CODES for at in range(len(HEALTHY[code]))]
AT_ONCE = {  # decided by what a network and its loss are made of
    "softmax-before-cross-entropy",
    "loss-broadcast",
    "loss-target-mismatch",
    "negative-loss",
    "output-misfits-loss",
    "output-range",
    "symmetric-init",
    "missing-activation",
    "batchnorm-small-batch",
    "non-finite",
}
EXAMINED = {  # by an experiment on a copy, at the step at which it was made
    "axes-scrambled",
    "missing-terminal-mask",
    "random-evaluation",
    "samples-mixed",
    "sees-the-future",
    "softmax-over-one",
    "target-is-input",
    "target-misaligned",
    "target-shifted",
    "term-without-gradient",
}
COUNTED = {  # by facts of the whole run: see `HEALTHY` for those that have too few
    "critic-in-policy-loss",
    "call-without-effect",
    "no-gradient",
    "optimizer-misses-parameters",
    "stale-optimizer",
    "unregistered-layers",
    "replica-divergence",
    "train-mode-evaluation",
    "weights-not-restored",
}
DECIDED = {  # codes that need no course of the loss: calls, records or batches decide
    "missing-step",
    "critic-in-policy-loss",
    "optimizer-recreated",
    "loss-broadcast",
    "softmax-before-cross-entropy",
    "negative-loss",
    "output-misfits-loss",
    "output-range",
    "padding-dominates",
    "unbalanced-loss-terms",
    "unshuffled-data",
    "evaluation-scale",
    "loss-target-mismatch",
    "non-finite",
    "symmetric-init",
    "missing-activation",
    "no-gradient",
    "optimizer-misses-parameters",
    "stale-optimizer",
    "unregistered-layers",
    "call-without-effect",
    "batchnorm-small-batch",
    "eval-mode-training",
    "unused-module",
    "train-mode-evaluation",
    "weights-not-restored",
    "unscaled-accumulation",
    "replica-divergence",
    "shared-layers",
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


@pytest.mark.parametrize("code", sorted(set(CODES) - DECIDED - EXAMINED))
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


BRANCHES = {  # of rules that say more than one thing
    "call-without-effect": misspelt,
    "no-gradient": frozen_end,
    "not-learning": lambda: Made().loss(flat(200, 2.1, 0.02)).record(**CLASSES),
    "oscillating-loss": lambda: bad(np.tile(np.repeat([0.5, 3.0], 10), 10)),
    "train-mode-evaluation": lambda: modes("norm", [0, "eval", True], calls=30).loss(
        [2.0, 1.9, 1.8], "e", "eval"
    ),
}
DATED = [*ILL.items(), *BRANCHES.items()]


@pytest.mark.parametrize("by", [12, 1000])
@pytest.mark.parametrize(("code", "made"), DATED, ids=[code for code, _ in DATED])
def test_no_onset_before_the_record_begins(code: str, made: Run, by: int) -> None:
    """A run that was recorded from a later step on: nothing is known of the steps before."""
    (usual,) = made().found(code)
    found = made().later(by).found(code)
    # Where the beginning is all but the whole run, some rules have seen too little of it.
    assert found or by == 1000
    for finding in found:
        assert by <= finding.first_step <= finding.last_step
        assert finding.first_step >= by + usual.first_step or finding.first_step >= by + 100
        assert "step 0 " not in finding.message


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("adam-instability", "train.py:5"),
        ("learning-rate-too-high", "train.py:5"),
        ("learning-rate-too-low", "train.py:5"),
        ("oscillating-loss", "train.py:5"),
        ("weight-decay-too-strong", "train.py:5"),
        ("scheduler-collapse", "train.py:6"),
        ("clipping-too-tight", "train.py:7"),
    ],
)
def test_findings_about_settings_name_the_line_that_sets_them(code: str, line: str) -> None:
    made = ILL[code]().event("order", calls=["clip"], lines={"clip": "train.py:7"})
    made.event("groups", optimizer="0", line="train.py:5", schedulers=["train.py:6"])
    assert made.found(code)[0].lines == (line,)
    assert ILL[code]().found(code)[0].lines == ()  # nobody saw it being made


def test_messages_have_the_numbers_and_addresses_of_the_run() -> None:
    texts = {code: ILL[code]().found(code)[0].message for code in CODES}
    assert texts["dead-units"].startswith("`act`: 80 of 100 units are dead since step 0")
    assert "mean 120 and spread 60" in texts["input-not-normalized"]
    assert "`a` and `b`" in texts["missing-activation"]
    assert "by 40.0% of their size" in texts["learning-rate-too-high"]
    assert "`a.weight`" in texts["optimizer-misses-parameters"]
    assert "step 57 from `log`: log of 0" in texts["non-finite"]
    assert "(32, 1)" in texts["loss-broadcast"]
    assert "(32,)" in texts["loss-broadcast"]
