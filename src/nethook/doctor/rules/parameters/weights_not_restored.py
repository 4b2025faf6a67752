"""A network is evaluated with weights that nobody has trained.

Cause: a checkpoint is read, and never given to the network: `state = torch.load(path)` without
`model.load_state_dict(state)`; or a new network is made where the trained one was meant.
Evidence: under `nethook run`, after the last step a network with the class and shapes of the
trained one is called without gradients; its constructor made its weights, nothing was loaded into
it, and they have nothing in common with those that were trained.
Fix: load the state into the network that is evaluated, or evaluate the trained one.
Silent: for copies and averages of the trained network, for networks that were loaded or are trained
themselves, and for those that are called while the training goes on (targets of their own). It is a
question: a network without training may be the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 20  # of the training before


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    told = [one for one in history.info("untrained_twins", []) if isinstance(one, Mapping)]
    if not told or history.steps < limit.steps:
        return
    kind, weights = str(told[0].get("kind", "")), int(told[0].get("weights", 0))
    last = max(history.steps - 1, history.first_step)
    yield Finding(
        "weights-not-restored",
        "info",
        f"after {history.steps} steps another {kind} was evaluated: it has the shapes of the "
        f"trained one, its {weights} weights are still those of its constructor, and nothing was "
        "loaded into it. Is that meant, as a baseline?",
        "Call model.load_state_dict(state) before the evaluation, or evaluate the network that was "
        "trained.",
        first_step=last,
        last_step=last,
        evidence={"weights in common with the trained network": Evidence(0, 1)},
    )


RULE = Rule(
    "weights-not-restored",
    Cause.LOOP,
    look,
    reads=("info.untrained_twins", "series.@loop.forwards.mean", "series.@loss.loss.mean"),
    defaults=Thresholds(),
)
