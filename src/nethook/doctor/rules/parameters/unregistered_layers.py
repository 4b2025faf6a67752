"""Layers lie in a Python list or dict of a module, or are made in its forward: it has them not.

Cause: `self.blocks = [nn.Linear(…), …]`, or `nn.Linear(8, 4)(x)` in a forward, which is a new
random layer at every call. A module registers what is assigned to it, and what is
in an `nn.ModuleList`, `nn.ModuleDict` or `nn.ParameterList`; what lies in a list, dict, tuple or
function is in no `parameters()`, no `state_dict()`, and no `.to(device)` moves it.
Evidence: leaves of the graph that no model lists and no optimizer has, found in an attribute of a
module; they got gradients at several looks, and their weights stayed what they were. Or parameters
in the graph whose module is gone before the backward pass begins, others at every look. A question:
a matrix of random numbers that is a plain attribute of a module, and never changes.
Fix: put them into an `nn.ModuleList` or `nn.ModuleDict`, before the optimizer is made; make layers
in `__init__`.
Silent: where an optimizer has them all the same, where other code moves them, for weights that were
loaded or trained before (a fixed network that is hidden from the optimizer on purpose), for what
gets no gradient, and where no optimizer steps at all. Vectors that are made in the forward (a norm
with its first weights) are a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.graph import IN_CONTAINERS, Graph, Loose, graph_of

_INSTEAD = {
    "dict": "nn.ModuleDict (its keys are strings)",
    "function": "an attribute of the module",
}


class Thresholds(NamedTuple):
    """What may be changed."""

    parameters: float = 1  # that lie in containers
    looks: float = 3  # at graphs with parameters that were made for them


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding with every container, and one of layers made in the forward."""
    graph = graph_of(history)
    yield from _born(history, graph, limit)
    yield from _plain(history, graph, limit)
    hidden = [one for one in graph.loose if one.how in IN_CONTAINERS and not one.filled]
    count = sum(one.parameters for one in hidden)
    if count < limit.parameters or not hidden or not any(one.steps for one in graph.optimizers):
        return
    places = {one.where: one for one in hidden}
    elements = sum(one.elements for one in hidden)
    kinds = ", ".join(dict.fromkeys(one.kind for one in hidden))
    first = hidden[0]
    lines = [one.line for one in hidden] + [one.line for one in graph.optimizers]
    yield Finding(
        "unregistered-layers",
        "error",
        f"{some(tuple(places), 'attribute')} {_is_a(tuple(places.values()))}: the {count} "
        f"parameters in it ({kinds}) get gradients, but model.parameters() does not list them, so "
        f"no optimizer has them and their {elements:,} weights never move.",
        f"Put them into {_instead(first)} instead of a Python {first.how}, before the optimizer "
        "is made.",
        sites=tuple(places),
        first_step=min(one.since for one in hidden),
        last_step=max(history.steps - 1, 0),
        evidence={"parameters in no optimizer": Evidence(count, limit.parameters)},
        lines=tuple(dict.fromkeys(line for line in lines if line)),
    )


def _born(history: History, graph: Graph, limit: Thresholds) -> Iterator[Finding]:
    """Layers that a forward makes, uses and forgets."""
    looks = int(graph.born.get("looks", 0))
    if looks < limit.looks or looks < 0.5 * graph.looks:
        return
    shapes = [tuple(shape) for shape in graph.born.get("shapes") or ()]
    count, elements = int(graph.born.get("parameters", 0)), int(graph.born.get("elements", 0))
    matrices = any(len(shape) > 1 for shape in shapes)
    since = int(graph.born.get("since", 0))
    shown = ", ".join(str(shape) for shape in dict.fromkeys(shapes))
    yield Finding(
        "unregistered-layers",
        "error" if matrices else "info",
        f"{count} parameters in the graph of the loss ({shown}) are made anew for every pass and "
        f"gone after it: no module has them. Their {elements:,} weights are "
        + ("random at every call" if matrices else "the first ones at every call")
        + " and never learn.",
        "Make the layer in __init__, self.proj = nn.Linear(…), and call self.proj in the forward: "
        "nn.Linear(…)(x) in a forward is a new layer each time.",
        first_step=since,
        last_step=max(history.steps - 1, since),
        evidence={"graphs with parameters of their own": Evidence(looks, limit.looks)},
    )


def _plain(history: History, graph: Graph, limit: Thresholds) -> Iterator[Finding]:
    """A question: tensors that look like weights and are attributes, not parameters."""
    if graph.looks < limit.looks or not any(one.steps for one in graph.optimizers):
        return
    places = tuple(str(one.get("address")) for one in graph.plain)
    if not places:
        return
    since = min(int(one.get("since", 0)) for one in graph.plain)
    shapes = ", ".join(str(tuple(one.get("shape") or ())) for one in graph.plain[:3])
    name = places[0].rpartition(".")[2]
    yield Finding(
        "unregistered-layers",
        "info",
        f"{some(places, 'tensor')} of random numbers ({shapes}) "
        f"{'is an attribute' if len(places) == 1 else 'are attributes'} of a module, and no "
        "parameter: no optimizer has it, and it stayed what it was. Is that meant?",
        f"If it is to learn, self.{name} = nn.Parameter(...), before the optimizer is made; if "
        f"not, self.register_buffer({name!r}, ...), so that it is saved with the model.",
        sites=places,
        first_step=since,
        last_step=max(history.steps - 1, since),
        evidence={"tensors of random numbers": Evidence(len(places), 1)},
    )


def _is_a(places: tuple[Loose, ...]) -> str:
    kinds = sorted({one.how for one in places})
    return f"is a Python {kinds[0]}" if len(places) == 1 else f"are Python {' and '.join(kinds)}s"


def _instead(first: Loose) -> str:
    if first.kind in ("Parameter", "Tensor"):
        return "nn.ParameterDict" if first.how == "dict" else "nn.ParameterList"
    return _INSTEAD.get(first.how, "nn.ModuleList")


RULE = Rule(
    "unregistered-layers",
    Cause.LOOP,
    look,
    reads=("info.graph", "series.@loop.forwards.mean", "series.@loss.loss.mean"),
    defaults=Thresholds(),
)
