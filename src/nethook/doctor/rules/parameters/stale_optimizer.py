"""The optimizer steps on tensors that the model does not have any more.

Cause: layers were replaced, or the model was made anew, after the optimizer had been given its
parameters: it holds the old tensors, which no graph reaches.
Evidence: an optimizer that steps holds tensors that are in no graph and in no network (or that were
this model's and are not any more), while parameters that the model has now get gradients, are in no
optimizer, and stay what they are. Or the model is not called any more, no backward pass reaches it,
and its optimizer goes on stepping without a gradient: for another model, as in the second fold. Or
its model was never called at all.
Fix: make the optimizer after the last change of the model, or add the new parameters to it.
Silent: where another optimizer has the new parameters, where other code moves them, and for
parameters in an optimizer that no graph reaches while all that gets gradients is in one: experts
that are idle, heads that are not used, the other network of two; and for steps on gradients that
are set by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import one_or_many, optimizer_lines, some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.graph import graph_of
from nethook.runs.names import BACKWARDS, EMPTY_GRADIENTS, FORWARDS, OPTIMIZER_STEPS


class Thresholds(NamedTuple):
    """What may be changed."""

    orphans: float = 1  # tensors in an optimizer that are in no graph and no network
    idle: float = 20  # steps of an optimizer after the last call of its model


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    yield from _left_behind(history, limit)
    graph = graph_of(history)
    stale = [one for one in graph.stale if one.orphans >= limit.orphans]
    left = graph.registered
    if not stale or not left:
        return
    sites = tuple(one.where for one in left)
    orphans = sum(one.orphans for one in stale)
    held = sum(one.parameters for one in stale)
    since = min(one.since for one in left)
    made = f" ({stale[0].line})" if stale[0].line else ""
    yield Finding(
        "stale-optimizer",
        "error",
        f"{orphans} of the {held} tensors that {stale[0].kind}{made} steps on are not in the model "
        f"any more, and {some(sites, 'parameter')} {one_or_many(sites, 'gets', 'get')} gradients "
        "and no optimizer has them: the model was changed after its optimizer was made.",
        "Make the optimizer after the last change of the model, "
        f"optimizer = {stale[0].kind}(model.parameters(), …).",
        sites=sites,
        first_step=since,
        last_step=max(history.steps - 1, since),
        evidence={
            "tensors that are in no graph": Evidence(orphans, limit.orphans),
            "parameters without an optimizer": Evidence(len(left), 1),
        },
        lines=tuple(dict.fromkeys(one.line for one in stale if one.line)),
    )


def _left_behind(history: History, limit: Thresholds) -> Iterator[Finding]:
    """The optimizer of a model that is not trained any more goes on stepping."""
    forwards, backwards = history.loop(FORWARDS), history.loop(BACKWARDS)
    used = [int(curve.where(curve.value > 0).step[-1]) for curve in (forwards, backwards)
            if curve.total > 0]  # fmt: skip
    if not history.info("totals", {}).get("optimizer_steps"):
        return
    if not used:
        yield from _never_called(history, limit)
    if len(used) < 2:
        return
    last = max(used)
    steps = history.loop(OPTIMIZER_STEPS).since(last + 1)
    empty = history.loop(EMPTY_GRADIENTS, "min").since(last + 1)
    # What was set by hand is a gradient, and so is what a graph that is replayed has written.
    if steps.total < limit.idle or not len(empty) or empty.value.min() < 1:
        return
    optimizers = graph_of(history).optimizers
    kind, line = (optimizers[0].kind, optimizers[0].line) if optimizers else ("the optimizer", "")
    yield Finding(
        "stale-optimizer",
        "warning",
        f"the model was called for the last time in step {last}, and no backward pass has reached "
        f"it since; {kind}{f' ({line})' if line else ''} went on for {steps.total:.0f} steps "
        "without a gradient for any of its tensors. If another model was trained meanwhile, this "
        "optimizer does not have its parameters.",
        "Make a new optimizer for each model: optimizer = "
        f"{kind if optimizers else 'Optimizer'}(model.parameters(), …) after the model is made, "
        "in every fold.",
        first_step=last + 1,
        last_step=max(history.steps - 1, last + 1),
        evidence={"steps without a gradient": Evidence(steps.total, limit.idle)},
        lines=(line,) if line else (),
    )


def _never_called(history: History, limit: Thresholds) -> Iterator[Finding]:
    """The optimizer has a model that is never called, and steps without a gradient."""
    steps, empty = history.loop(OPTIMIZER_STEPS), history.loop(EMPTY_GRADIENTS, "min")
    if steps.total < limit.idle or not len(empty) or empty.value.min() < 1:
        return
    yield Finding(
        "stale-optimizer",
        "error",
        f"the optimizer made {steps.total:.0f} steps on a model that was never called, and none of "
        "its tensors ever had a gradient: what is called and trained is another model, a copy of "
        "this one for example.",
        "Make the optimizer of the model that is called: optimizer = Optimizer(model.parameters(), "
        "…) after the model is copied, loaded or made anew.",
        first_step=history.first_step,
        last_step=max(history.steps - 1, history.first_step),
        evidence={"steps without a gradient": Evidence(steps.total, limit.idle)},
        lines=optimizer_lines(history),
    )


RULE = Rule(
    "stale-optimizer",
    Cause.LOOP,
    look,
    reads=(
        "event.groups",
        "info.graph",
        "info.totals",
        "series.@loop.backwards.mean",
        "series.@loop.empty_gradients.min",
        "series.@loop.forwards.mean",
        "series.@loop.optimizer_steps.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
