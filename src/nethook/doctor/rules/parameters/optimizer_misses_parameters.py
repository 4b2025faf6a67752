"""Parameters are used and get gradients, and never move, because no optimizer has them.

Cause: the optimizer was made with a part of the parameters, or with those of one of two networks.
Evidence: a gradient arrived, the weights did not change in any step that was measured, and no
group of an optimizer that steps has the parameter. The same of a whole network that is in the graph
of the loss beside the one that is trained.
Fix: give the optimizer all parameters that are to be trained.
Silent: for parameters frozen on purpose (`requires_grad=False`, even where a gradient of before is
still there), for those that other code moves (a momentum teacher), for copies of a network that is
trained, and for a second network in eval mode. Where the weights were loaded or trained before (a
backbone under a new head, a critic that is kept), it is information.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding, Severity
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.phrases import one_or_many, some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.graph import Graph, Loose, graph_of
from nethook.runs.names import OPTIMIZER_STEPS


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 3  # steps with a gradient


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding of parameters, and one of networks."""
    if not history.loop(OPTIMIZER_STEPS).total:
        return  # nothing moves at all: `missing-step`
    graph = graph_of(history)
    missed = [parameter for parameter in history.parameters if _is_missed(parameter, limit)]
    known = {parameter.address for parameter in history.parameters}
    later = [one for one in graph.registered if one.where not in known and not one.filled]
    if missed and not graph.stale:
        yield _of_parameters(history, missed, graph)
    elif later and not graph.stale:
        yield _of_later_ones(history, later, graph)
    networks = [one for one in graph.loose if _is_left_out(one, history)]
    if networks:
        yield _of_networks(history, networks, graph)


def _of_parameters(history: History, missed: list[SiteFacts], graph: Graph) -> Finding:
    elements = sum(int(parameter.fact("elements", 0)) for parameter in missed)
    everything = sum(int(parameter.fact("elements", 0)) for parameter in history.parameters)
    sites = tuple(parameter.address for parameter in missed)
    severity: Severity = "error"
    fix = (
        "Make the optimizer with all of them, optimizer = Optimizer(model.parameters(), …), after "
        "the model is complete; or freeze them with requires_grad_(False) if that is meant."
    )
    if all(parameter.fact("filled") for parameter in missed):
        severity = "info"
        fix = (
            "If they are to stay as they were loaded, requires_grad_(False) saves their gradients; "
            "if not, give them to the optimizer."
        )
    return Finding(
        "optimizer-misses-parameters",
        severity,
        f"{some(sites, 'parameter')} {one_or_many(sites, 'gets', 'get')} gradients and never "
        f"{one_or_many(sites, 'moves', 'move')}: no optimizer holds them. That is {elements:,} of "
        f"{everything:,} weights.",
        fix,
        sites=sites,
        first_step=_since(history, sites, graph),
        last_step=history.steps - 1,
        evidence={"parameters without an optimizer": Evidence(len(missed), 1)},
        lines=_lines(graph),
    )


def _of_later_ones(history: History, later: list[Loose], graph: Graph) -> Finding:
    """Layers that were added to a model after its optimizer was made."""
    names = tuple(one.where for one in later)
    since = min(one.since for one in later)
    return Finding(
        "optimizer-misses-parameters",
        "error",
        f"{some(names, 'parameter')} came to the model at step {since}, "
        f"{one_or_many(names, 'gets', 'get')} gradients and never "
        f"{one_or_many(names, 'moves', 'move')}: the optimizer was made before, and does not hold "
        f"{one_or_many(names, 'it', 'them')}.",
        "Make the optimizer after the model is complete, or give it the new layers: "
        'optimizer.add_param_group({"params": adapter.parameters()}).',
        sites=names,
        first_step=since,
        last_step=max(history.steps - 1, since),
        evidence={"parameters without an optimizer": Evidence(len(later), 1)},
        lines=_lines(graph),
    )


def _of_networks(history: History, networks: list[Loose], graph: Graph) -> Finding:
    names = tuple(dict.fromkeys(one.where for one in networks))
    count = sum(one.parameters for one in networks)
    elements = sum(one.elements for one in networks)
    known = all(one.filled for one in networks)
    return Finding(
        "optimizer-misses-parameters",
        "info" if known else "warning",
        f"{some(names, 'network')} {one_or_many(names, 'is', 'are')} in the graph of the loss, and "
        f"no optimizer has {one_or_many(names, 'its', 'their')} {count} parameters: {elements:,} "
        + ("weights stay as they were loaded." if known else "weights stay at their random start."),
        "If they are to stay as they are, freeze them with requires_grad_(False); if not, give "
        "them to the optimizer: Optimizer([*first.parameters(), *second.parameters()], …).",
        first_step=min(one.since for one in networks),
        last_step=max(history.steps - 1, 0),
        evidence={"parameters without an optimizer": Evidence(count, 1)},
        lines=tuple(dict.fromkeys([*_lines(graph), *(one.line for one in networks if one.line)])),
    )


def _since(history: History, sites: tuple[str, ...], graph: Graph) -> int:
    """The first graph in which one of them was a leaf; without graphs, where the record begins."""
    met = [one.since for one in graph.registered if one.where in sites]
    return min(met, default=history.first_step)


def _lines(graph: Graph) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.line for one in graph.optimizers if one.line and one.steps))


def _is_left_out(one: Loose, history: History) -> bool:
    models = history.info("models") or {}
    kinds = {str(about.get("type")) for about in models.values() if isinstance(about, dict)}
    return one.how == "module" and one.training and one.kind not in kinds


def _is_missed(parameter: SiteFacts, limit: Thresholds) -> bool:
    moved, measured = (parameter.fact("moved") or [0, 0])[:2]
    return (
        not parameter.fact("groups")
        # Frozen: a gradient that is there is one of before.
        and parameter.fact("requires_grad") is not False
        and parameter.fact("with_grad", 0) >= limit.steps
        and measured > 0
        and moved == 0
    )


RULE = Rule(
    "optimizer-misses-parameters",
    Cause.LOOP,
    look,
    reads=(
        "info.graph",
        "info.models",
        "parameter.elements",
        "parameter.filled",
        "parameter.groups",
        "parameter.moved",
        "parameter.requires_grad",
        "parameter.with_grad",
        "series.@loop.forwards.mean",
        "series.@loop.optimizer_steps.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
