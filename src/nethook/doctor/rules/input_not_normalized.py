"""Raw inputs go into the network.

Cause: pixels from 0 to 255, prices, sensor readings, without mean and spread brought to about 0
and 1.
Evidence: size and offset of what enters, together with the trouble that it makes: activations at
their ends, a first loss far above what it should be, or a loss that does not fall well.
Fix: subtract the mean and divide by the spread of the training data.
Silent: where the first layer is a norm or an embedding, and where there is no such trouble.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.first_loss import FIRST_LOSS_READS, first_loss
from nethook.doctor.signals.layers import NEAR_READS, first_layer, saturated_layers
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import INPUTS


class Thresholds(NamedTuple):
    """What may be changed."""

    size: float = 10  # root mean square
    offset: float = 5  # mean by standard deviation, where the inputs are larger than `raw`
    raw: float = 3
    loss: float = 3  # first loss by the usual one


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    mean, std = history.curve("", INPUTS, "mean"), history.curve("", INPUTS, "std")
    rms = history.curve("", INPUTS, "rms")
    if not len(rms) or not len(std) or first_layer(history) in ("norm", "embedding"):
        return
    size = median(rms.value)
    away = abs(median(mean.value)) / max(median(std.value), 1e-12)
    if not (size > limit.size or (away > limit.offset and size > limit.raw)):
        return
    trouble = _trouble(history, limit)
    if not trouble:
        return
    yield Finding(
        "input-not-normalized",
        "warning",
        f"inputs have mean {median(mean.value):.3g} and spread "
        f"{median(std.value):.3g}, and {trouble}.",
        "Subtract the mean and divide by the standard deviation of the training data, or put a "
        "normalisation layer first.",
        first_step=0,
        last_step=history.steps - 1,
        evidence={
            "size of the inputs": Evidence(size, limit.size),
            "mean by spread": Evidence(away, limit.offset),
        },
    )


def _trouble(history: History, limit: Thresholds) -> str:
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
