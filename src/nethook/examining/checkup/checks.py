"""What was measured before training, held against what it should be.

Each function gives a `Check`, and a finding where something is wrong that no rule has found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.phrases import number, some
from nethook.examining.checkup.dead_units import FEWEST
from nethook.examining.checkup.modes import Modes
from nethook.examining.checkup.result import Check, State
from nethook.examining.checkup.trial import SAMPLES, Look, Trial
from nethook.init.proof.report import Report

Told: TypeAlias = tuple[Check, list[Finding]]

GROWTH: Final = 30.0
"""A layer's signal by what it should be, from which on the start is bad: as in `bad-init-scale`."""
PROFILE: Final = 1e-3
"""Gradient of the first layer by that of the last, and the other way round."""
HIGH: Final = 3.0
"""First loss by the usual one."""
DEAD: Final = 0.3
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
    text = (
        f"between {number(smallest.relative)} (`{smallest.address}`) and "
        f"{number(largest.relative)} (`{largest.address}`) times what keeps its scale"
    )
    large, small = largest.relative > GROWTH, smallest.relative < 1 / GROWTH
    if not (large or small):
        return Check("signal over depth", "ok", text), []
    worst, word = (largest, "large") if large else (smallest, "small")
    finding = Finding(
        "bad-init-scale",
        "warning",
        f"weights start too {word}: the signal at `{worst.address}` is {number(worst.relative)} "
        "times what keeps its scale.",
        "Start with weights that keep the scale: nethook.init.plan(model, inputs) shows which, "
        "nethook.init.apply_ sets them.",
        sites=(worst.address,),
        evidence={"signal by what it should be": Evidence(worst.relative, GROWTH)},
    )
    return Check("signal over depth", "bad", text), [finding]


def gradient(report: Report) -> Told:
    """The scale of the gradient over depth."""
    rows = [row for row in report.rows if math.isfinite(row.backward) and row.backward > 0]
    if len(rows) < 2:
        return Check("gradient over depth", "unknown", "too few layers have a gradient"), []
    first, last = rows[0], max(rows[len(rows) // 2 :], key=lambda row: row.backward)
    ratio = first.backward / last.backward
    text = f"{number(ratio)} at `{first.address}`, relative to `{last.address}`"
    if len(rows) < 3 or PROFILE <= ratio <= 1 / PROFILE:
        return Check("gradient over depth", "ok", text), []
    word = "smaller" if ratio < 1 else "larger"
    times = max(ratio, 1 / ratio)
    finding = Finding(
        "vanishing-gradient" if ratio < 1 else "exploding-gradient",
        "warning",
        f"the gradient is {number(times)} times {word} at `{first.address}` than at "
        f"`{last.address}`, over {len(rows)} layers.",
        "Start with nethook.init.apply_(model, nethook.init.plan(model, inputs)), use ReLU or GELU "
        "instead of sigmoid and tanh, add norms or skip connections.",
        sites=(first.address,),
        evidence={"first layer by last": Evidence(ratio, PROFILE if ratio < 1 else 1 / PROFILE)},
    )
    return Check("gradient over depth", "bad", text), [finding]


def initial_loss(look: Look) -> Told:
    """The first loss, against what it should be for that many classes."""
    if not math.isfinite(look.loss):
        return Check("first loss", "bad", f"it is {look.loss}"), []
    if look.first is None:
        return Check(
            "first loss", "unknown", f"{number(look.loss)}; what is usual is not known"
        ), []
    value, usual = look.first
    text = f"{number(value)}, where {number(usual)} is usual"
    if value <= HIGH * usual:
        # One that is much lower knows the answers already: a model that was trained before.
        return Check("first loss", "ok", text), []
    finding = Finding(
        "bad-init-scale",
        "warning",
        f"the first loss is {number(value)}, where {number(usual)} is usual: the network is sure "
        "of answers that it cannot know yet.",
        "Start with a smaller last layer, scale inputs (and targets of a regression) to a spread "
        "of about 1, or use nethook.init.apply_.",
        evidence={"first loss by the usual one": Evidence(value / usual, HIGH)},
    )
    return Check("first loss", "bad", text), [finding]


def inputs(scales: Mapping[str, tuple[float, float]], found: Sequence[Finding]) -> Told:
    """Mean and spread of what enters, with what rules have found about it."""
    bad = [each for each in found if each.code.startswith("input-")]
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


def fit(found: Sequence[Finding]) -> Told:
    """Whether loss, output and targets fit together; rules have looked at that."""
    bad = [each for each in found if each.code in _OF_LOSS]
    if bad:
        return Check("output, loss and target", "bad", ", ".join(each.code for each in bad)), []
    return Check("output, loss and target", "ok", "they fit each other, as far as is known"), []


_OF_LOSS: Final = frozenset({
    "softmax-before-cross-entropy", "loss-target-mismatch", "loss-broadcast", "negative-loss",
    "output-range",
})  # fmt: skip


def start(found: Sequence[Finding]) -> Told:
    """Whether units start different from each other."""
    same = [each for each in found if each.code == "symmetric-init"]
    if same:
        return Check("units at the start", "bad", f"equal in {some(same[0].sites, 'weight')}"), []
    return Check("units at the start", "ok", "different from each other"), []


def reachable(found: Sequence[Finding], parameters: int) -> Told:
    """Whether every parameter gets a gradient."""
    codes = ("no-gradient", "unused-module", "optimizer-misses-parameters")
    bad = [each for each in found if each.code in codes]
    if not bad:
        return Check("parameters", "ok", f"all {parameters} that are trained get a gradient"), []
    worst: State = "bad" if any(each.severity != "info" for each in bad) else "note"
    text = "; ".join(f"{each.code}: {some(each.sites, 'site')}" for each in bad)
    return Check("parameters", worst, text), []


def units(silent: Mapping[str, tuple[int, int]], samples: int) -> Told:
    """Units that no sample of the batch makes active."""
    if samples < FEWEST:
        return Check("dead units", "unknown", f"a batch of {FEWEST} or more is needed"), []
    if not silent:
        return Check("dead units", "ok", "no rectifiers"), []
    worst = max(silent, key=lambda each: silent[each][0] / max(1, silent[each][1]))
    dead, all_of_them = silent[worst]
    share = dead / max(1, all_of_them)
    text = f"at most {dead} of {all_of_them} (`{worst}`)"
    if share < DEAD:
        return Check("dead units", "ok", text), []
    finding = Finding(
        "dead-units",
        "error" if share >= 0.5 else "warning",
        f"`{worst}`: {dead} of {all_of_them} units are dead: zero for each of {samples} samples, "
        "before the first step.",
        "Start biases at zero and weights with nethook.init.apply_, scale the inputs, or use "
        "nn.LeakyReLU or nn.GELU.",
        sites=tuple(each for each, (n, of) in silent.items() if n / max(1, of) >= DEAD),
        evidence={"share of dead units": Evidence(share, DEAD)},
    )
    return Check("dead units", "bad", text), [finding]


def modes(seen: Modes) -> Told:
    """Whether evaluation repeats, and agrees with training where it should."""
    if not seen.repeats:
        if not seen.dropouts:
            how = f": {some(seen.chance, 'operation')} draw numbers" if seen.chance else ""
            text = f"two passes in evaluation differ{how}"
            return Check("training and evaluation", "note", text), []
        finding = Finding(
            "train-mode-evaluation",
            "warning",
            f"in evaluation mode the model still drops: two passes over one batch differ "
            f"({some(seen.dropouts, 'operation')}).",
            "Write F.dropout(x, p, training=self.training), or use nn.Dropout.",
            sites=seen.dropouts,
            evidence={"operations that drop in evaluation": Evidence(len(seen.dropouts), 1)},
        )
        return Check("training and evaluation", "bad", "evaluation is random"), [finding]
    if seen.agrees:
        return Check("training and evaluation", "ok", "give the same"), []
    if seen.modal:
        text = f"differ, as {some(seen.modal, 'module')} mean them to"
        return Check("training and evaluation", "ok", text), []
    text = "differ, and no module is known that means them to: look for `self.training`"
    return Check("training and evaluation", "note", text), []


def by_heart(made: Sequence[Trial], samples: int, given: bool, found: Sequence[Finding]) -> Told:
    """Whether a few samples can be learnt by heart."""
    name = f"learns {min(samples, SAMPLES) or 'its'} samples"
    first, last = made[0], made[-1]
    text = "; ".join(
        f"loss {number(each.start)} → {number(each.end)} in {len(each.losses)} steps of "
        f"{each.optimizer}"
        for each in (made if given else [min(made, key=lambda t: _order(t.end))])
    )
    if first.learns or (last.learns and not given):
        return Check(name, "ok", text), []
    if any(each.severity == "error" for each in found):
        return Check(name, "bad", text), []  # that is the cause
    if last.learns:
        message = f"with the given optimizer the network does not learn a few samples: {text}."
        fix = "Look at its learning rate, its weight decay, and which parameters it has."
    else:
        message = f"the network does not learn a few samples by heart: {text}."
        fix = (
            "Look at what the forward does with its input, and whether the loss compares what it "
            "is meant to."
        )
    fall = (first.start - first.end) / max(abs(first.start), 1e-12)
    finding = Finding(
        "not-learning",
        "warning" if last.learns else "error",
        message,
        fix,
        last_step=len(first.losses) - 1,
        evidence={"fall of the loss": Evidence(fall, 0.3)},
    )
    return Check(name, "bad", text), [finding]


def _order(value: float) -> float:
    return math.inf if math.isnan(value) else value
