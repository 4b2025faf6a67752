"""The loss of a policy has a gradient for its critic.

Cause: `loss = -(log_prob * (reward - value)).mean()` with a value that is not detached: the critic
is pushed to where the policy's loss is small, away from what rewards are.
Evidence: the graph of the loss: a summand is the product of a likelihood's logarithm with a
difference of data and the one output of a layer, and both sides have a gradient.
Fix: `advantage = (reward - value).detach()`; the critic has a loss of its own.
Silent: where the difference is detached, for losses without such a product (SAC, DDPG), for weights
that a network gives to samples (a sigmoid or softmax is on the way), and for a focal loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.graph import graph_of


class Thresholds(NamedTuple):
    """What may be changed."""

    graphs: float = 3  # in which it was seen


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    graph = graph_of(history)
    if not graph.critics:
        return
    line, count = max(graph.critics.items(), key=lambda entry: entry[1])
    if count < limit.graphs:
        return
    yield Finding(
        "critic-in-policy-loss",
        "warning",
        "the loss of the policy, log-likelihood times (reward - value), has a gradient for the "
        "value: it moves the critic to where the policy's loss is small, and not to the rewards.",
        "Detach the weight of the policy: advantage = (reward - value).detach(). The critic learns "
        "from its own loss, (reward - value).pow(2).",
        first_step=history.first_step,
        last_step=max(history.steps - 1, history.first_step),
        evidence={"graphs in which it was seen": Evidence(count, limit.graphs)},
        lines=(line,),
    )


RULE = Rule(
    "critic-in-policy-loss",
    Cause.LOSS,
    look,
    reads=("info.graph", "series.@loop.forwards.mean", "series.@loss.loss.mean"),
    defaults=Thresholds(),
)
