"""Two linear layers in a row, with nothing non-linear between them.

Cause: an activation was forgotten: two such layers can do no more than one.
Evidence: the order of operations at step 0: from one layer with weights to the next there are only
linear operations.
Fix: put an activation between them.
Silent: for factorised layers (the space between is narrower than either side), depthwise and
pointwise convolutions, and attention. Only information where the run does its job, or where
nothing is known of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.linear import linear_pairs
from nethook.doctor.signals.progress import PROGRESS_READS, progress


class Thresholds(NamedTuple):
    """What may be changed."""

    pairs: float = 1


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    pairs = list(linear_pairs(history))
    if len(pairs) < limit.pairs or not pairs:
        return
    went = progress(history)
    well = went is None or went.does_its_job  # of a few steps nothing is known yet
    shown = " and ".join(f"`{site}`" for site in pairs[0])
    left = len(pairs) - 1
    more = f" (and {left} more {'pair' if left == 1 else 'pairs'})" if left else ""
    yield Finding(
        "missing-activation",
        "info" if well else "warning",
        f"between {shown}{more} there is nothing non-linear: together they can do no more than one "
        "linear layer.",
        "Put an activation between them, such as nn.ReLU(); if the pair is meant, nothing is "
        "wrong.",
        sites=tuple(dict.fromkeys(site for pair in pairs for site in pair)),
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence={"linear layers in a row": Evidence(len(pairs), limit.pairs)},
    )


RULE = Rule(
    "missing-activation",
    Cause.START,
    look,
    reads=(
        *PROGRESS_READS,
        "info.ops",
        "module.shape",
        "parameter.owners",
        "parameter.shape",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
