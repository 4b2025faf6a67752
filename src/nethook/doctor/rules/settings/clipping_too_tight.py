"""Nearly every step is clipped hard.

Cause: a limit far below the usual norm of the gradients.
Evidence: norms before and after clipping: most steps lose most of their gradient; and the loss does
not fall well.
Fix: a higher limit.
Silent: where the run does its job (adaptive optimizers do not mind), where gradients explode, and
for the loss of PPO, which is clipped hard by default and says little of what was learnt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import call_lines
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.layers import norm_of_weights
from nethook.doctor.signals.progress import PROGRESS_READS, is_of_a_policy, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import CLIP_LIMIT, GRAD_NORM, GRAD_NORM_UNCLIPPED
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    share: float = 0.8  # of the steps
    factor: float = 10  # norm before clipping, by the limit
    size: float = 5  # the same by the norm of the weights: from there on gradients explode


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    before, bound = history.loop(GRAD_NORM_UNCLIPPED), history.loop(CLIP_LIMIT)
    after = history.loop(GRAD_NORM)
    went = progress(history)
    if went is None or went.does_its_job or not went.finite or not len(before) or not len(after):
        return
    shared, ours, theirs = np.intersect1d(before.step, after.step, return_indices=True)
    if len(shared) < 5 or is_of_a_policy(history):
        return
    lost = before.value[ours] / np.maximum(after.value[theirs], 1e-30)
    share = float((lost >= limit.factor).mean()) * len(shared) / max(1, len(after))
    if share < limit.share:
        return
    usual, to = median(before.value), median(bound.value) if len(bound) else 0
    if usual > limit.size * norm_of_weights(history):
        return  # then the gradients are too large, and not the limit too small
    yield Finding(
        "clipping-too-tight",
        "warning",
        f"{share:.0%} of the steps are clipped to a tenth or less: gradients have a norm of about "
        f"{number(usual)} and are cut to {number(to)}, and the loss stays at {went.end:.3g}.",
        f"Raise the limit, to about {number(usual)}: then only the outliers are clipped.",
        first_step=int(shared[0]),
        last_step=int(shared[-1]),
        evidence={
            "share of steps": Evidence(share, limit.share),
            "norm before by norm after": Evidence(median(lost), limit.factor),
        },
        lines=call_lines(history, "clip"),
    )


RULE = Rule(
    "clipping-too-tight",
    Cause.SETTINGS,
    look,
    reads=(
        *PROGRESS_READS,
        "event.order",
        "parameter.elements",
        "series.@loop.clip_limit.mean",
        "series.@loop.forwards.mean",
        "series.@loop.grad_norm.mean",
        "series.@loop.grad_norm_unclipped.mean",
        "series.params.rms",
    ),
    defaults=Thresholds(),
)
