"""Raw inputs go into the network.

Cause: pixels from 0 to 255, prices, sensor readings, without mean and spread brought to about 0
and 1.
Evidence: size and offset of what enters, together with the trouble that it makes: activations at
their ends, a first loss far above what it should be, or a loss that does not fall well. Small
inputs count where their offset is many times their spread, as after a division too many. Or inputs
that get many times larger in the middle of the run, and the loss with them.
Fix: subtract the mean and divide by the spread of the training data.
Silent: where the first layer is a norm or an embedding, and where there is no such trouble.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Curve, History
from nethook.doctor.phrases import some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.first_loss import FIRST_LOSS_READS, first_loss
from nethook.doctor.signals.layers import NEAR_READS, first_layer, saturated_layers
from nethook.doctor.signals.onset import onset
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import INPUTS


class Thresholds(NamedTuple):
    """What may be changed."""

    size: float = 10  # root mean square
    offset: float = 5  # mean by standard deviation, where the inputs are larger than `raw`
    raw: float = 3
    huge: float = 100  # root mean square, from which on a run has to do well
    far: float = 50  # mean by standard deviation, of inputs of whatever size
    loss: float = 3  # first loss by the usual one
    grows: float = 10  # size of the inputs, by what it was before


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    mean, std = history.curve("", INPUTS, "mean"), history.curve("", INPUTS, "std")
    rms = history.curve("", INPUTS, "rms")
    if not len(rms) or not len(std) or first_layer(history) in ("norm", "embedding"):
        return
    changed = _since(rms, history, limit)
    if changed is not None:
        yield changed
        return
    size = median(rms.value)
    away = abs(median(mean.value)) / max(median(std.value), 1e-12)
    off = away > limit.far or (away > limit.offset and size > limit.raw)
    if not (size > limit.size or off):
        return
    trouble = _trouble(history, limit, huge=size > limit.huge)
    if not trouble:
        return
    first = onset(rms, rms.value > min(limit.size, size / 2))
    yield Finding(
        "input-not-normalized",
        "warning",
        f"inputs have mean {median(mean.value):.3g} and spread "
        f"{median(std.value):.3g}, and {trouble}.",
        "Subtract the mean and divide by the standard deviation of the training data, or put a "
        "normalisation layer first." + (_TWICE if away > limit.far and size <= limit.size else ""),
        first_step=first if first is not None else int(rms.step[0]),
        last_step=history.steps - 1,
        evidence={
            "size of the inputs": Evidence(size, limit.size),
            "mean by spread": Evidence(away, limit.offset),
        },
    )


_TWICE = (
    " Such a spread is often the work of two divisions: by 255 in the data set, and again in a "
    "normalisation that expects 0 to 255."
)


def _since(rms: Curve, history: History, limit: Thresholds) -> Finding | None:
    """Inputs of another size from some step on, with a loss that is worse since."""
    value = rms.value
    if len(value) < 12 or not np.isfinite(value).all():
        return None
    for at in range(6, len(value) - 3):
        before, after = median(value[:at]), median(value[at:])
        if value[at] < limit.grows * before or after < limit.grows * before:
            continue
        step = int(rms.step[at - 1]) + 1
        for loss in history.losses():
            earlier, later = loss.until(step - 1).value[-20:], loss.since(step).value
            later = later[np.isfinite(later)]
            if len(earlier) < 5 or len(later) < 5 or median(later) < 1.5 * median(earlier):
                continue
            return Finding(
                "input-not-normalized",
                "warning",
                f"since about step {step} inputs are {after / before:.3g} times as large as before "
                f"(root mean square {after:.3g}, and {before:.3g} until then), and the loss went "
                f"from {median(earlier):.3g} to {median(later):.3g}.",
                "Look at the data that came in at that step: it needs a division of its own.",
                first_step=step,
                last_step=history.steps - 1,
                evidence={"size of the inputs, by before": Evidence(after / before, limit.grows)},
            )
        return None
    return None


def _trouble(history: History, limit: Thresholds, *, huge: bool) -> str:
    """What raw inputs have done."""
    ends = saturated_layers(history)
    if ends:
        return f"the units of {some(list(ends), 'layer')} sit at their ends"
    began = first_loss(history)
    if began is not None and began[0] > limit.loss * began[1]:
        return f"the first loss is {began[0]:.3g}, where {began[1]:.3g} would be usual"
    went = progress(history)
    if went is not None and not went.does_its_job:
        return "the loss does not fall well"
    if huge and went is not None and went.constant is not None and not went.does_well:
        return (
            f"the loss ends at {went.end:.3g}, where one answer for all inputs would score "
            f"{went.constant:.3g}"
        )
    return ""


RULE = Rule(
    "input-not-normalized",
    Cause.DATA,
    look,
    reads=(
        *dict.fromkeys((*PROGRESS_READS, *FIRST_LOSS_READS)),
        *NEAR_READS,
        "module.parameters",
        "series.@loop.forwards.mean",
        "series.inputs.info.dtype",
        "series.inputs.mean",
        "series.inputs.rms",
        "series.inputs.std",
    ),
    defaults=Thresholds(),
)
