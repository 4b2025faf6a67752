"""Two linear layers in a row, with nothing non-linear between them.

Cause: an activation was forgotten: two such layers can do no more than one.
Evidence: the order of operations at step 0: from one layer with weights to the next there are only
linear operations, or these and a batch norm. An activation that was made beside them and is never
called says that one was meant.
Fix: put an activation between them, or call the one that is there.
Silent: for factorised layers (the space between is narrower than either side), depthwise and
pointwise convolutions, and attention. Only information where the run does its job, or where
nothing is known of that; there a batch norm counts as an end of the row unless an activation was
made and never called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import one_or_many, some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.linear import Pair, linear_pairs
from nethook.doctor.signals.progress import PROGRESS_READS, progress

_BENDS: Final = ("rectifier", "bounded")
"""Kinds of modules that a row of linear layers ends at."""


class Thresholds(NamedTuple):
    """What may be changed."""

    pairs: float = 1


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    well = went is None or went.does_its_job  # of a few steps nothing is known yet
    idle = _idle_activations(history)
    pairs = [
        pair for pair in linear_pairs(history) if not pair.normed or not well or _beside(pair, idle)
    ]
    if len(pairs) < limit.pairs or not pairs:
        return
    shown = f"`{pairs[0].first}` and `{pairs[0].second}`"
    left = len(pairs) - 1
    more = f" (and {left} more {'pair' if left == 1 else 'pairs'})" if left else ""
    beside = tuple(dict.fromkeys(site for pair in pairs for site in _beside(pair, idle)))
    meant = (
        f" {some(beside, 'activation')} {one_or_many(beside, 'was', 'were')} made and never called."
    )
    yield Finding(
        "missing-activation",
        "info" if well else "warning",
        f"between {shown}{more} there is nothing non-linear"
        f"{' but a batch norm' if all(pair.normed for pair in pairs) else ''}: together they can "
        f"do no more than one linear layer.{meant if beside else ''}",
        f"Call `self.{beside[0].rpartition('.')[2]}` in the forward, after the layer or its norm."
        if beside
        else "Put an activation between them, such as nn.ReLU(); if the pair is meant, nothing is "
        "wrong.",
        sites=tuple(dict.fromkeys(site for pair in pairs for site in pair[:2])),
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence={"linear layers in a row": Evidence(len(pairs), limit.pairs)},
    )


def _idle_activations(history: History) -> tuple[str, ...]:
    """Activations of the model that were never called, in a run whose calls are known."""
    if not any(module.fact("first_call") is not None for module in history.modules):
        return ()
    return tuple(
        module.address
        for module in history.modules
        if module.fact("activation") in _BENDS and module.fact("first_call") is None
    )


def _beside(pair: Pair, idle: tuple[str, ...]) -> list[str]:
    """Those that are in the same module as one of the layers."""
    parents = {site.rpartition(".")[0] for site in pair[:2]}
    return [site for site in idle if site.rpartition(".")[0] in parents]


RULE = Rule(
    "missing-activation",
    Cause.START,
    look,
    reads=(
        *PROGRESS_READS,
        "info.ops",
        "module.activation",
        "module.first_call",
        "parameter.owners",
        "parameter.shape",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
