"""The same few samples are used in every step.

Cause: `next(iter(loader))` without shuffling inside the loop; a `break` that ends every epoch of a
loader which does not shuffle; a `WeightedRandomSampler` that was given one weight per class instead
of one per sample.
Evidence: the fingerprint of the inputs, equal from step to step; or a few of them that come again
and again, and hold a small part of the samples of a loader that goes through them in order; or a
sampler with fewer weights than its data set has samples, which never draws the rest of them.
Fix: iterate over the whole loader; give the sampler the weight of each sample.
Silent: below warning where batches are equal: training on the full batch, on a graph, or
overfitting one batch on purpose look the same. For samplers of subsets, and weights of zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Examined, History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import lines, number, since
from nethook.runs.names import BATCH_SIZE, FINGERPRINT, REPEATED

REACH: Final = "the loader reaches every sample"


class Thresholds(NamedTuple):
    """What may be changed."""

    share: float = 0.9  # of the steps
    steps: float = 20
    used: float = 0.5  # of the samples of a loader
    rounds: float = 3  # times that each batch was met


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    narrow = next((one for one in history.examined(REACH) if one.outcome == "found"), None)
    if narrow is not None:
        yield _left_out(narrow, history)
        return
    seen = _few_batches(history, limit)
    if seen is not None:
        yield seen
        return
    repeated = history.batch(REPEATED)
    size = history.batch(BATCH_SIZE)
    if repeated.steps.sum() < limit.steps or not len(size):
        return
    steps = int(repeated.steps.sum())
    # A model that is called several times in a step is asked about its first batch.
    same = min(repeated.total, float(steps))
    share = same / steps
    if share >= limit.share:
        yield Finding(
            "repeated-batch",
            "info",
            f"{same:.0f} of {steps} steps used the batch of the step "
            f"before: the network sees {size.value[-1]:.0f} samples and no others.",
            "Iterate over the loader (for x, y in loader: …) instead of calling next(iter(loader)) "
            "in every step; if the batch is all the data there is, nothing is wrong.",
            first_step=int(repeated.step[0]),
            last_step=int(repeated.step[-1]),
            evidence={"share of repeated batches": Evidence(share, limit.share)},
        )


def _few_batches(history: History, limit: Thresholds) -> Finding | None:
    """Of a loader that goes through its samples in order, the same first batches in every epoch."""
    ordered = [one for one in history.examined(REACH) if one.outcome == "fine"]
    samples = max((number(one, "samples", 0.0) for one in ordered), default=0.0)
    marks, size = history.scalar(FINGERPRINT).value, history.batch(BATCH_SIZE)
    if len({one.fact("in_order") for one in ordered} | {True}) > 1 or not samples:
        return None
    different = len(set(marks.tolist()))
    if different < 2 or len(marks) < limit.rounds * different or not len(size):
        return None
    used = different * float(size.value.max())
    if used > limit.used * samples:
        return None
    return Finding(
        "repeated-batch",
        "warning",
        f"{len(marks)} batches that were looked at are {different} different ones, with "
        f"{used:.0f} of the {samples:.0f} samples of the data loader, which goes through them in "
        "order: the rest is never used.",
        "Look for a break, a limit of steps or next(iter(loader)) that ends the epoch early; with "
        "shuffle=True each epoch begins with other samples.",
        first_step=history.first_step,
        last_step=max(history.steps - 1, history.first_step),
        evidence={
            "share of the samples": Evidence(used / samples, limit.used),
            "batches by different ones": Evidence(len(marks) / different, limit.rounds),
        },
    )


def _left_out(result: Examined, history: History) -> Finding:
    """Samples that no batch will ever hold."""
    reach, samples = number(result, "within_reach", 0.0), number(result, "samples", 0.0)
    return Finding(
        "repeated-batch",
        "warning",
        f"the WeightedRandomSampler of the data loader has {reach:.0f} weights, and the data set "
        f"{samples:.0f} samples: only the first {reach:.0f} are ever drawn, again and again. It "
        "takes one weight per sample, not one per class.",
        "Give the sampler the weight of each sample: "
        "WeightedRandomSampler(class_weights[labels], len(labels)).",
        first_step=since(result),
        last_step=max(since(result), history.steps - 1),
        evidence={"samples within reach": Evidence(reach, samples)},
        lines=lines(result),
    )


RULE = Rule(
    "repeated-batch",
    Cause.DATA,
    look,
    reads=(
        f"examined.{REACH}",
        f"examined.{REACH}.in_order",
        f"examined.{REACH}.lines",
        f"examined.{REACH}.samples",
        f"examined.{REACH}.within_reach",
        "scalar.batch_fingerprint",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
        "series.@batch.repeated.mean",
        "series.@batch.size.mean",
    ),
    defaults=Thresholds(),
)
