"""Weights whose gradient arrives and is nothing but zeros, from the first step to the last.

A factor of zero, a softmax over one number, or a value that is in its own likelihood: what depends
on the weights cancels out. Dead rectifiers look alike at first sight, but behind them no weight
gets anything either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.phrases import some
from nethook.doctor.signals.graph import Graph
from nethook.doctor.signals.progress import progress
from nethook.runs.names import PARAM_GRADS

ZERO_READS: Final = (
    "parameter.groups",
    "parameter.shape",
    "parameter.with_grad",
    "series.param_grads.zero_share",
)
"""The fields that `always_zero` reads."""

ZEROS: Final = "weights with a gradient of zeros"
"""The evidence by which such a finding is known."""
WINDOWS: Final = 8
"""Fewer measurements do not say "never"."""


def always_zero(history: History) -> list[SiteFacts]:
    """Weights of two dimensions and more, that an optimizer has; none where all are like that."""
    held = [
        parameter
        for parameter in history.parameters
        if len(parameter.fact("shape", [])) >= 2 and parameter.fact("with_grad", 0) > 0
    ]
    zero, alive = [], 0
    for parameter in held:
        seen = history.curve(parameter.address, PARAM_GRADS, "zero_share")
        if len(seen) < WINDOWS:
            continue
        if seen.value.min() == 1.0 and parameter.fact("groups"):
            zero.append(parameter)
        alive += bool(seen.value.max() < 1.0)
    return zero if alive else []


def of_zeros(history: History, graph: Graph) -> Iterator[Finding]:
    """Gradients that arrive and are zero in every step: what depends on the weights cancels out."""
    zero = [] if graph.second_order else always_zero(history)
    if not zero:
        return
    went = progress(history)
    sites = tuple(parameter.address for parameter in zero)
    yield Finding(
        "no-gradient",
        "info" if went is None or went.does_its_job else "warning",
        f"the gradient of {some(sites, 'weight')} is zero in every element and every step that "
        "was measured, while others learn: in the loss, what depends on "
        f"{'it' if len(sites) == 1 else 'them'} cancels out or has the factor zero.",
        "Look for a factor of zero, a softmax over one element, and a sample that keeps its "
        "history in its own likelihood: dist.log_prob(sample.detach()).",
        sites=sites,
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence={ZEROS: Evidence(len(zero), 1)},
    )
