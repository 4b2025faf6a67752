"""Early layers get no signal.

Cause: many layers that each make the gradient smaller: saturating activations, small weights.
Evidence: the profile of gradients over depth: those of the first layers by those of the last, and
by the weights they are to change; and a run that does not improve.
Fix: other activations, another initialisation, norms, skip connections.
Silent: where the run improves, and for layers behind gates that start at zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Curve, History
from nethook.doctor.phrases import KEEP_GRADIENT
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.layers import gradient_profile
from nethook.doctor.signals.onset import since
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.runs.names import GRADS
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    ratio: float = 1e-3  # first layers by last layer
    depth: float = 3  # layers with weights


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    if went is None or went.improves:
        return
    steps = history.steps
    sizes = [layer for layer in gradient_profile(history, steps // 4, steps) if layer[1] >= 0]
    if len(sizes) < limit.depth:
        return
    first, early = sizes[0]
    last, end = max(sizes[len(sizes) // 2 :], key=lambda layer: layer[1])
    if not (np.isfinite(end) and end > 0) or early / end > limit.ratio:
        return
    # Nothing at all comes through where something is cut, and that is another finding.
    slope = np.diff(np.log10([max(value, 1e-40) for _, value in sizes]))
    falls = float((slope > 0).mean())
    if falls < 0.6 and early > 0:
        return
    began = _began(history, first, last, limit.ratio)
    late = began - history.first_step > max(5, steps // 10)
    weak = [address for address, value in sizes if value < limit.ratio * end]
    yield Finding(
        "vanishing-gradient",
        "error",
        f"the gradient is {_times(end, early)} smaller at `{first}` than at `{last}`: over "
        f"{len(sizes)} layers nothing is left of it, and the loss stays at {went.end:.3g}."
        + (f" Before step {began} it was not so: this is a symptom." if late else ""),
        _LATE if late else _FIX,
        sites=tuple(weak),
        first_step=began,
        last_step=steps - 1,
        evidence={"first layer by last": Evidence(early / end, limit.ratio)},
    )


def _began(history: History, first: str, last: str, ratio: float) -> int:
    """Since when the one gradient is so much smaller than the other."""
    early, end = history.curve(first, GRADS, "rms"), history.curve(last, GRADS, "rms")
    _, ours, theirs = np.intersect1d(early.step, end.step, return_indices=True)
    both = Curve(early.step[ours], early.value[ours], early.steps[ours])
    small = both.value <= ratio * end.value[theirs]
    if not small.any():  # in none of the steps in which both were measured
        return max(history.first_step, history.steps // 4)  # where the profile begins
    return since(both, small)


_FIX = (
    "Use ReLU or GELU instead of sigmoid and tanh, start with nethook.init.apply_, add norms or "
    "skip connections."
)
_LATE = (
    "Look at what happened at that step: a learning rate that rose, units that died, activations "
    "at their ends; lower the rate or clip gradients."
)


def _times(large: float, small: float) -> str:
    return f"{large / small:.1g} times" if small > 0 else "beyond measure"


def before_training(first: str, last: str, ratio: float, layers: int) -> Finding:
    """A finding of the pre-flight check: `ratio` is the first layer's gradient by the last's."""
    return Finding(
        "vanishing-gradient",
        "warning",
        f"the gradient is {number(1 / ratio)} times smaller at `{first}` than at `{last}`, over "
        f"{layers} layers.",
        KEEP_GRADIENT,
        sites=(first,),
        evidence={"first layer by last": Evidence(ratio, Thresholds().ratio)},
    )


RULE = Rule(
    "vanishing-gradient",
    Cause.SYMPTOM,
    look,
    reads=(
        *PROGRESS_READS,
        "module.activation",
        "module.first_call",
        "module.leaf",
        "module.parameters",
        "series.@loop.forwards.mean",
        "series.grads.rms",
    ),
    defaults=Thresholds(),
)
