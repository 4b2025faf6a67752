"""What was measured before training, compared with what it should be.

Each function gives a `Check`, and a finding where something is wrong that no rule has found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from nethook.doctor.finding import Finding
from nethook.doctor.phrases import some
from nethook.doctor.rules.loop import train_mode_evaluation
from nethook.doctor.rules.start import bad_init_scale
from nethook.doctor.rules.symptoms import (
    dead_units,
    exploding_gradient,
    not_learning,
    vanishing_gradient,
)
from nethook.examining.checkup.dead_units import FEWEST
from nethook.examining.checkup.modes import Modes
from nethook.examining.checkup.result import Check, State
from nethook.examining.checkup.trial import SAMPLES, FirstSteps, Trial
from nethook.init.proof.report import Report
from nethook.text.numbers import ascii_number as number

Told: TypeAlias = tuple[Check, list[Finding]]

GROWTH: Final = bad_init_scale.Thresholds().growth
"""A layer's signal by what it should be, from which on the initialisation is bad."""
DEAD: Final = dead_units.Thresholds().share
"""Share of a layer's units."""
RAW: Final = 10.0
"""Root mean square of inputs."""


def signal(report: Report) -> Told:
    """The scale of the signal over depth."""
    # The last layer may be small on purpose: the answer of a fresh network is near zero.
    rows = [row for row in report.rows if math.isfinite(row.relative) and not row.cancelled_by]
    if not rows:
        return Check("signal over depth", "unknown", "no layer with weights was called"), []
    inner = [row for row in rows if not (row.ends_branch and row.forward == 0)]
    largest = max(inner or rows, key=lambda row: row.relative)
    smallest = min(inner[:-1] or inner or rows, key=lambda row: row.relative)
    least, most = (f"{number(row.relative)} (`{row.address}`)" for row in (smallest, largest))
    between = most if smallest is largest else f"between {least} and {most}"
    text = f"{between} times what keeps its scale"
    large, small = largest.relative > GROWTH, smallest.relative < 1 / GROWTH
    if not (large or small):
        return Check("signal over depth", "ok", text), []
    worst = largest if large else smallest
    finding = bad_init_scale.signal_before_training(worst.address, worst.relative)
    return Check("signal over depth", "bad", text), [finding]


def gradient(report: Report) -> Told:
    """The scale of the gradient over depth."""
    rows = [row for row in report.rows if math.isfinite(row.backward) and row.backward > 0]
    if len(rows) < 2:
        return Check("gradient over depth", "unknown", "too few layers have a gradient"), []
    first, last = rows[0], max(rows[len(rows) // 2 :], key=lambda row: row.backward)
    ratio = first.backward / last.backward
    text = f"{number(ratio)} at `{first.address}`, relative to `{last.address}`"
    least, most = vanishing_gradient.Thresholds().ratio, exploding_gradient.Thresholds().profile
    if len(rows) < 3 or least <= ratio <= most:
        return Check("gradient over depth", "ok", text), []
    rule = vanishing_gradient if ratio < 1 else exploding_gradient
    finding = rule.before_training(first.address, last.address, ratio, len(rows))
    return Check("gradient over depth", "bad", text), [finding]


def initial_loss(first: FirstSteps) -> Told:
    """The first loss, against what it should be for that many classes."""
    if not math.isfinite(first.loss):
        return Check("first loss", "bad", f"it is {first.loss}"), []
    if first.first_loss is None:
        return Check(
            "first loss", "unknown", f"{number(first.loss)}; what is usual is not known"
        ), []
    value, usual = first.first_loss
    text = f"{number(value)}, where {number(usual)} is usual"
    if value <= bad_init_scale.HIGH_LOSS * usual:
        # One that is much lower knows the answers already: a model that was trained before.
        return Check("first loss", "ok", text), []
    finding = bad_init_scale.loss_before_training(value, usual)
    return Check("first loss", "bad", text), [finding]


def inputs(scales: Mapping[str, tuple[float, float]], findings: Sequence[Finding]) -> Told:
    """Mean and spread of what enters, with what rules have found about it."""
    bad = [finding for finding in findings if finding.code.startswith("input-")]
    shown = "; ".join(
        f"{name} mean {number(mean)}, spread {number(std)}" for name, (mean, std) in scales.items()
    )
    if bad:
        return Check("inputs", "bad", f"{shown}: {bad[0].code}"), []
    if not scales:
        return Check("inputs", "ok", "no floating-point numbers: nothing to scale"), []
    large = any(math.hypot(mean, std) > RAW for mean, std in scales.values())
    hint = "; large, and no harm so far" if large else ""
    return Check("inputs", "note" if large else "ok", shown + hint), []


def fit(findings: Sequence[Finding]) -> Told:
    """Whether loss, output and targets fit together; rules have looked at that."""
    bad = [finding for finding in findings if finding.code in _OF_LOSS]
    if bad:
        return Check(
            "output, loss and target", "bad", ", ".join(finding.code for finding in bad)
        ), []
    return Check("output, loss and target", "ok", "they fit each other, as far as is known"), []


_OF_LOSS: Final = frozenset({
    "softmax-before-cross-entropy", "loss-target-mismatch", "loss-broadcast", "negative-loss",
    "output-range",
})  # fmt: skip


def start(findings: Sequence[Finding]) -> Told:
    """Whether units start different from each other."""
    same = [finding for finding in findings if finding.code == "symmetric-init"]
    if same:
        return Check("units at the start", "bad", f"equal in {some(same[0].sites, 'weight')}"), []
    return Check("units at the start", "ok", "different from each other"), []


def reachable(findings: Sequence[Finding], parameters: int) -> Told:
    """Whether every parameter gets a gradient."""
    codes = ("no-gradient", "unused-module", "optimizer-misses-parameters")
    bad = [finding for finding in findings if finding.code in codes]
    if not bad:
        return Check("parameters", "ok", f"all {parameters} that are trained get a gradient"), []
    worst: State = "bad" if any(finding.severity != "info" for finding in bad) else "note"
    text = "; ".join(f"{finding.code}: {some(finding.sites, 'site')}" for finding in bad)
    return Check("parameters", worst, text), []


def units(dead: Mapping[str, tuple[int, int]], samples: int) -> Told:
    """Units that no sample of the batch makes active."""
    if samples < FEWEST:
        return Check("dead units", "unknown", f"a batch of {FEWEST} or more is needed"), []
    if not dead:
        return Check("dead units", "ok", "no rectifiers"), []
    worst = max(dead, key=lambda address: dead[address][0] / max(1, dead[address][1]))
    count, all_of_them = dead[worst]
    share = count / max(1, all_of_them)
    text = f"at most {count} of {all_of_them} (`{worst}`)"
    if share < DEAD:
        return Check("dead units", "ok", text), []
    finding = dead_units.before_training(dead, samples)
    return Check("dead units", "bad", text), [finding]


def modes(seen: Modes) -> Told:
    """Whether evaluation repeats, and agrees with training where it should."""
    if not seen.repeats:
        if not seen.dropouts:
            how = f": {some(seen.chance, 'operation')} draw numbers" if seen.chance else ""
            text = f"two passes in evaluation differ{how}"
            return Check("training and evaluation", "note", text), []
        finding = train_mode_evaluation.before_training(seen.dropouts)
        return Check("training and evaluation", "bad", "evaluation is random"), [finding]
    if seen.agrees:
        return Check("training and evaluation", "ok", "give the same"), []
    if seen.modal:
        text = f"differ, as {some(seen.modal, 'module')} mean them to"
        return Check("training and evaluation", "ok", text), []
    text = "differ, and no module is known that means them to: look for `self.training`"
    return Check("training and evaluation", "note", text), []


def overfits(made: Sequence[Trial], samples: int, given: bool, findings: Sequence[Finding]) -> Told:
    """Whether the model can overfit a few samples."""
    name = f"learns {min(samples, SAMPLES) or 'its'} samples"
    first, last = made[0], made[-1]
    text = "; ".join(
        f"loss {number(trial.start)} → {number(trial.end)} in {len(trial.losses)} steps of "
        f"{trial.optimizer}"
        for trial in (made if given else [min(made, key=lambda t: _order(t.end))])
    )
    if first.learns or (last.learns and not given):
        return Check(name, "ok", text), []
    if any(finding.severity == "error" for finding in findings):
        return Check(name, "bad", text), []  # that is the cause
    fall = (first.start - first.end) / max(abs(first.start), 1e-12)
    steps = len(first.losses)
    finding = not_learning.of_few_samples(text, fall, steps, others_learn=last.learns)
    return Check(name, "bad", text), [finding]


def experiments(examined: Sequence[Mapping[str, Any]]) -> list[Told]:
    """What came of the experiments on copies; nothing where none was made.

    Findings are those of the rules that read them.
    """
    by = {
        outcome: [str(one.get("experiment")) for one in examined if one.get("outcome") == outcome]
        for outcome in ("fine", "found", "question")
    }
    tried = sum(map(len, by.values()))
    if not tried:
        return []
    text, state = f"{tried} made, nothing found", "ok"
    if by["found"]:
        text, state = f"not so: {', '.join(by['found'])}", "bad"
    elif by["question"]:
        text, state = f"is that meant? not so: {', '.join(by['question'])}", "note"
    return [(Check("experiments on copies", cast(State, state), text), [])]


def _order(value: float) -> float:
    return math.inf if math.isnan(value) else value
