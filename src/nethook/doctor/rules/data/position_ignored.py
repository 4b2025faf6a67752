"""The order of a sequence does not matter to the network, and little is learnt.

Cause: positions are missing before an attention, or a mean over all steps comes before what was to
read their order: a sentence is a bag of words.
Evidence: on a copy, the steps of all sequences were turned round, and the output stayed as it was;
and a loss that does not fall well.
Fix: add positions to the embeddings.
Silent: where the run does its job, and where the order matters. It is a question: for a set, or for
a bag of words, the order is not to matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, meant, number
from nethook.doctor.signals.progress import PROGRESS_READS, progress

EXAMINED = "the order matters"


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 20


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result, went = first(history, EXAMINED), progress(history)
    if result is None or went is None or went.does_its_job or history.steps < limit.steps:
        return
    steps = number(result, "steps", 0.0)
    yield finding_of(
        history,
        result,
        "position-ignored",
        f"on a copy of the model, all sequences of {steps:.0f} steps were turned round, and the "
        "output stayed as it was: the network does not see their order, and little is learnt."
        + meant(result),
        "Add positions before an attention: x = x + position(torch.arange(steps)), or sines; an "
        "RNN or a convolution sees the order by itself.",
        {"change of the output": Evidence(0.0), "steps of a sequence": Evidence(steps)},
        "info",
    )


RULE = Rule(
    "position-ignored",
    Cause.DATA,
    look,
    reads=(
        *PROGRESS_READS,
        f"examined.{EXAMINED}",
        f"examined.{EXAMINED}.lines",
        f"examined.{EXAMINED}.steps",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
