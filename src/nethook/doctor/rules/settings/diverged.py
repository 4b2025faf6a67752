"""A run that had learnt has lost it again.

Cause: what the record shows to have changed before: a learning rate that rose, inputs of another
scale, another mode. Where nothing changed it is a symptom, and the message says so.
Evidence: the best loss and its step, the loss since, and by how much the learning rate or the
inputs changed in between.
Fix: undo what changed; otherwise a lower rate, clipping, a look at the batches of that step.
Silent: for a loss that comes down again (restarts, new classes), for losses without a floor (policy
gradients) and those whose targets grow (Q-learning), and where the loss is not finite at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.divergence import (
    BACK,
    DIVERGENCE_READS,
    LEARNT,
    STAYS,
    changes_before,
    divergence,
)
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    back: float = BACK  # of the way from the best loss back up
    stays: float = STAYS  # values of the loss that lie up there, to the end
    learnt: float = LEARNT  # fall of the loss, by its start, that counts as learnt


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    lost = divergence(history, limit.back, limit.stays, limit.learnt)
    if lost is None:
        return
    changes = changes_before(history, lost)
    evidence = {
        "best loss": Evidence(lost.best),
        "step of the best loss": Evidence(lost.best_step),
        "loss since": Evidence(lost.end, lost.best + limit.back * (lost.top - lost.best)),
    }
    if changes:
        why = f" Before that, {'; '.join(change.what for change in changes[:2])}."
        fix = changes[0].fix
        if changes[0].factor == changes[0].factor:
            evidence["factor of the change"] = Evidence(changes[0].factor)
    else:
        why = (
            " This is a symptom: learning rate, inputs and modes are what they were while it "
            "learnt. Possible causes, the likeliest first: a learning rate at the edge of what is "
            "stable, gradients that spike, single bad batches."
        )
        fix = (
            "Lower the learning rate or clip gradients (torch.nn.utils.clip_grad_norm_), and look "
            f"at the batches around step {lost.onset}."
        )
    guess = ""
    if lost.guess is not None and lost.end >= 0.9 * lost.guess:
        word = "above" if lost.end > 1.2 * lost.guess else "as high as"
        guess = f", {word} what one answer for all inputs would score ({number(lost.guess)})"
    yield Finding(
        "diverged",
        "error",
        f"the loss had fallen from {number(lost.start)} to {number(lost.best)} at step "
        f"{lost.best_step}, and is {number(lost.end)} since step {lost.onset}{guess}: what was "
        f"learnt is lost.{why}",
        fix,
        first_step=lost.onset,
        last_step=history.steps - 1,
        evidence=evidence,
    )


RULE = Rule("diverged", Cause.SETTINGS, look, reads=DIVERGENCE_READS, defaults=Thresholds())
