"""Steps are too large.

Cause: a learning rate that throws the weights about instead of moving them.
Evidence: the true update by the weights, while the loss ends above its start, or does not fall, or
is no longer finite; or, where weights are moved by hand, a loss that each of the first steps makes
many times larger; or leaps up in the first steps and does not do its job afterwards. A note where
the first steps were larger than the weights themselves, the loss leapt up, and fell by half at most
since. Or a deep network that gives one answer for all inputs after large first steps of Adam.
Fix: a lower rate; warm-up.
Silent: where the loss falls, however large the steps are (also until an operation makes a NaN),
where gradients explode with updates of a usual size, and where a run had learnt before
(`diverged` says what changed).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Curve, History
from nethook.doctor.phrases import optimizer_lines, rate_in_words
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.divergence import DIVERGENCE_READS, divergence
from nethook.doctor.signals.one_answer import ONE_ANSWER_READS, one_answer
from nethook.doctor.signals.one_batch import ONE_BATCH_READS, one_batch
from nethook.doctor.signals.progress import Progress, longest_loss, progress
from nethook.doctor.signals.quantiles import median, quantile, running_medians
from nethook.runs.names import GRAD_NORM, GROUPS, OPTIMIZER_STEPS, UPDATE_RATIO
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    ratio: float = 0.03  # update by weights, where the loss diverges
    stuck: float = 0.1  # and where it merely does not fall
    steps: float = 20  # before which a loss that is finite does not diverge
    first: float = 0.5  # in the first steps, where it does not fall: the start is overwritten
    thrown: float = 1.0  # in the first steps, where the loss leaps up and falls only in part
    leap: float = 1.2  # loss after steps that are too large, by its start
    lost: float = 1.05  # the same, where nothing is learnt afterwards
    hurt: float = 1.5  # the same in a run that learns all the same
    rate: float = 3e-3  # of Adam, in a deep network that comes to one answer for all inputs
    deep: float = 8  # weights of two dimensions from which on a network is deep
    grows: float = 8  # first steps by hand, each of which raises the loss by as much


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    ratio = history.loop(UPDATE_RATIO)
    went = progress(history)
    finite = ratio.where(np.isfinite(ratio.value))
    if went is not None and divergence(history) is None:
        found = list(_by_hand(history, went, limit))
        if found or not len(ratio):
            yield from found
            return
    if went is None and len(finite) >= 5 and finite.value[:3].max() > limit.thrown:
        yield _unjudged(history, finite, limit)
    if went is None or not len(finite) or divergence(history) is not None:
        return  # what changed before a run lost what it had learnt, is said there
    # A run that is not finite after two steps has no more of them.
    if len(finite) < 5 and (went.finite or finite.value.max() < limit.first):
        return
    if not went.finite and not _grew(history, len(finite)):
        return  # it learnt, and one operation made a NaN: the steps are not the cause
    early = finite.value[:10]
    usual, peak = median(finite.value), quantile(early, 0.9)
    beginning = float(early.max())
    # In a few steps batches that are sorted look like a loss that rises.
    enough = history.steps >= limit.steps or not went.finite
    worse = enough and went.diverges and max(usual, peak) > limit.ratio
    stuck = not went.improves and usual > limit.stuck
    # A step larger than the weights, after which the loss is a multiple of what it was.
    thrown = beginning > limit.thrown and went.early > 3 * abs(went.start)
    overwritten = (not went.improves and beginning > limit.first) or (
        not went.does_its_job and thrown
    )
    # The first steps, or those after a warm-up, were too large: the loss leapt up, and it was over.
    leapt = None if went.improves else _leapt(history, went, finite, limit)
    if not (worse or stuck or overwritten or leapt):
        least = max((limit.hurt - 1) * abs(went.start), 5 * went.noise)
        half = 0.5 * abs(went.start if went.constant is None else went.constant)
        if beginning > limit.thrown and went.early - went.start > least and went.end > half:
            yield _thrown(history, went, finite, limit)
        elif _collapses(history, went, finite, limit):
            yield _collapsed(history, went, finite, limit)
        return
    if worse or stuck or overwritten:
        large = max(usual, peak) if worse else usual if stuck else beginning
        threshold = limit.ratio if worse else limit.stuck if stuck else limit.first
        over = finite.where(finite.value > threshold)
        first = int(over.step[0]) if len(over) else int(finite.step[0])
    else:
        first, large = leapt or (0, 0.0)
        threshold = limit.stuck
    rate = history.largest_rate()
    tried = one_batch(history)
    shown = tried if tried is not None and tried.own_fails and tried.adam_learns else None
    rose = f", rose to {went.early:.3g}" if went.early > limit.lost * abs(went.start) else ""
    ends = f"{rose} and " + (
        f"ends at {went.end:.3g}" if went.finite else "is not finite at the end"
    )
    changed = f"{large:.1%} of their size" if large < 10 else f"{large:.1g} times their size"
    yield Finding(
        "learning-rate-too-high",
        "error",
        f"a step changes the weights by {changed} (0.1 % is usual); the loss began at "
        f"{went.start:.3g}{ends}.{rate_in_words(rate)}"
        + ("" if shown is None else f" {shown.words}"),
        f"Lower the learning rate, {_lower(rate, 0.003 / large)}, or warm it up over the first "
        "steps.",
        first_step=first,
        last_step=int(finite.step[-1]),
        evidence={
            "update by weights": Evidence(large, threshold),
            **({} if shown is None else shown.evidence),
        },
        lines=optimizer_lines(history),
    )


def _by_hand(history: History, went: Progress, limit: Thresholds) -> Iterator[Finding]:
    """Weights that no optimizer moves: each step makes the loss many times what it was."""
    named = longest_loss(history)
    if named is None or history.loop(OPTIMIZER_STEPS).total or not went.diverges:
        return
    curve = named[1]
    value = curve.value[np.isfinite(curve.value) & (curve.value > 0)]
    grown = value[1:] / value[:-1]
    rises = int(np.argmax(np.append(grown <= limit.hurt, True)))
    if rises < limit.grows:
        return
    factor = median(grown[:rises])
    yield Finding(
        "learning-rate-too-high",
        "error",
        f"from the first step on, each of {rises} steps in a row makes the loss about "
        f"{number(factor)} times what it was before: an update by hand that goes too far, and "
        "comes back further.",
        "Lower the factor that gradients are multiplied by: by a hundred, and again until the loss "
        "falls; inputs of a spread of about 1 allow a larger one.",
        first_step=int(curve.step[0]),
        last_step=int(curve.step[-1]),
        evidence={
            "steps in a row that raise the loss": Evidence(rises, limit.grows),
            "loss by that of the step before": Evidence(factor, limit.hurt),
        },
    )


def _unjudged(history: History, ratio: Curve, limit: Thresholds) -> Finding:
    """A note where the loss does not measure progress: nothing is left of the start."""
    large, rate = float(ratio.value[:3].max()), history.largest_rate()
    return Finding(
        "learning-rate-too-high",
        "info",
        f"the first steps changed the weights by {large:.2g} times their size (0.1 % is usual): "
        "nothing is left of the start. The losses of this run do not say whether it learns."
        f"{rate_in_words(rate)}",
        f"Lower the learning rate, {_lower(rate, 0.003 / large)}, and compare the score.",
        first_step=int(ratio.step[0]),
        last_step=int(ratio.step[-1]),
        evidence={"update by weights": Evidence(large, limit.thrown)},
        lines=optimizer_lines(history),
    )


def _lower(rate: float, factor: float) -> str:
    """How far to lower it."""
    if math.isfinite(rate):
        return f"to about {number(rate * factor)}"
    return f"to about 1/{number(float(f'{1 / factor:.1g}'))} of what it is"


def _collapses(history: History, went: Progress, ratio: Curve, limit: Thresholds) -> bool:
    """Whether a deep network gives one answer after first steps of Adam that were large."""
    matrices = [one for one in history.parameters if len(one.fact("shape", [])) >= 2]
    if went.does_its_job or len(matrices) < limit.deep:
        return False
    if history.largest_rate() < limit.rate or float(ratio.value[:10].max()) < limit.ratio:
        return False
    kinds = {str(event.data.get("type")) for event in history.events(GROUPS)}
    return bool(kinds) and all("Adam" in kind for kind in kinds) and one_answer(history)


def _collapsed(history: History, went: Progress, ratio: Curve, limit: Thresholds) -> Finding:
    large, rate = float(ratio.value[:10].max()), history.largest_rate()
    return Finding(
        "learning-rate-too-high",
        "warning",
        f"the first steps of Adam changed the weights by {large:.1%} of their size (0.1 % is "
        f"usual), at a rate of {number(rate)}, and since then the network has one answer for all "
        f"inputs: the loss went from {went.start:.3g} to {went.end:.3g} and stays there.",
        f"Try a learning rate of {number(rate / 30)}, with a warm-up over the first steps.",
        first_step=int(ratio.step[0]),
        last_step=int(ratio.step[-1]),
        evidence={
            "update by weights": Evidence(large, limit.ratio),
            "learning rate": Evidence(rate, limit.rate),
        },
        lines=optimizer_lines(history),
    )


def _thrown(history: History, went: Progress, ratio: Curve, limit: Thresholds) -> Finding:
    """A note: the first steps have replaced the weights that the network began with."""
    large = float(ratio.value[:10].max())
    rate = history.largest_rate()
    return Finding(
        "learning-rate-too-high",
        "info",
        f"the first steps changed the weights by {large:.2g} times their size, and the loss leapt "
        f"from {went.start:.3g} to {went.early:.3g}: nothing is left of the start. It came down to "
        f"{went.end:.3g} since, and may come further at a lower rate.{rate_in_words(rate)}",
        f"Lower the learning rate, {_lower(rate, 0.03 / large)}, or warm it up over the first "
        "steps.",
        first_step=int(ratio.step[0]),
        last_step=int(ratio.step[-1]),
        evidence={
            "update by weights": Evidence(large, limit.thrown),
            "loss after the first steps, by its start": Evidence(
                went.early / max(abs(went.start), 1e-12), limit.hurt
            ),
        },
    )


def _grew(history: History, steps: int) -> bool:
    """Whether loss or gradients grew before they were no longer finite.

    A loss that fell until then did not diverge. Of a few steps nothing is known.
    """
    named = longest_loss(history)
    if named is None or steps < 5:
        return True
    value = named[1].value
    bad = np.flatnonzero(~np.isfinite(value))
    before = value[: bad[0]] if len(bad) else value
    before = before[np.isfinite(before)]
    if len(before) < 5:
        return True
    norm = history.loop(GRAD_NORM, "max").until(int(named[1].step[bad[0]]) if len(bad) else 0)
    norm = norm.where(np.isfinite(norm.value) & (norm.value > 0))
    explodes = len(norm) >= 5 and norm.value[-3:].max() > 10 * median(norm.value)
    fell = median(before[-3:]) < 0.9 * float(np.max(before[:3]))
    return not fell or bool(explodes)


def _leapt(
    history: History, went: Progress, ratio: Curve, limit: Thresholds
) -> tuple[int, float] | None:
    """The step and the size of an update of a tenth of the weights, after which the loss leapt."""
    named = longest_loss(history)
    over = ratio.where(ratio.value > limit.stuck)
    if named is None or not len(over):
        return None
    begins = int(over.step[0] - over.steps[0] + 1)
    values = named[1].since(begins).value[: max(30, history.steps // 5)]
    values = values[np.isfinite(values)]
    if len(values) < 5:
        return None
    top = float(running_medians(values, 5).max())
    leap = limit.lost if went.learnt_nothing else limit.leap
    if top < leap * abs(went.start) or top - went.start < 3 * went.noise:
        return None
    return begins, float(over.value.max())


RULE = Rule(
    "learning-rate-too-high",
    Cause.SETTINGS,
    look,
    reads=(
        *dict.fromkeys(
            (
                *DIVERGENCE_READS,
                *ONE_BATCH_READS,
                *ONE_ANSWER_READS,
                "event.groups",
                "parameter.shape",
            )
        ),
        "series.@loop.grad_norm.max",
        "series.@loop.optimizer_steps.mean",
        "series.@loop.update_ratio.mean",
    ),
    defaults=Thresholds(),
)
