"""A term of the loss has no gradient: it is printed, and not learnt.

Cause: a penalty that is added as a plain number, `loss + 0.01 * penalty.item()`, or that was
computed of `.data`, behind `.detach()` or in `torch.no_grad()`; a loss of the teacher against the
teacher, or of what was stored.
Evidence: the operations between output and loss: a summand that was made of the output or the
weights, and the way back to them is cut, while the other summand has a gradient; or a loss function
of torch that was given nothing with a gradient.
Fix: add the tensor itself; give the loss the output of the network that learns.
Silent: for factors that were read, for constants that the script has typed, for what comes from
data alone, for numbers that are only printed, and where a term is exchanged for its own copy,
`loss + (shown - loss).detach()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, text

EXAMINED = "every term has a gradient"
OF_CONSTANTS = "a loss of tensors without a gradient"


class Thresholds(NamedTuple):
    """What may be changed."""

    terms: float = 1  # without a gradient


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED)
    if result is None or limit.terms > 1:
        return
    how = text(result, "how") or "a tensor without a gradient"
    made = (
        "of which none was computed by a network that learns here"
        if how == OF_CONSTANTS
        else "which was computed of the output or the weights"
    )
    fix = (
        "Give it the output of the network that is trained, computed in this step, in the place of "
        "its teacher's or of one that was stored."
        if how == OF_CONSTANTS
        else "Add the tensor itself, without .item(), .data, .detach() or torch.no_grad(): "
        "loss = loss + 0.01 * sum(p.abs().sum() for p in model.parameters())."
    )
    yield finding_of(
        history,
        result,
        "term-without-gradient",
        f"{how} is added to the loss, {made}: it changes the loss that is shown, and no gradient, "
        "so that nothing learns to make it small.",
        fix,
        {"terms without a gradient": Evidence(1, limit.terms)},
        "warning",
    )


RULE = Rule(
    "term-without-gradient",
    Cause.LOSS,
    look,
    reads=(
        f"examined.{EXAMINED}",
        f"examined.{EXAMINED}.how",
        f"examined.{EXAMINED}.lines",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
