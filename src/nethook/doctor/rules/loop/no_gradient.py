"""Parameters are used in the forward, and no gradient ever arrives.

Cause: a `.detach()`, `.data`, `.item()`, `torch.no_grad()`, a new tensor or a conversion to numpy
cut the graph, or `requires_grad=False` was set by accident.
Evidence: one of these. The module was called in training, its parameters never had a gradient, an
optimizer has them, and other parameters did get gradients. Or backward passes ran, the optimizers
stepped, and no graph had a parameter of the model in it: the loss is a tensor that no operation
made, or leads to something else; or no backward pass was ever run. Or the last layer is frozen at
the random weights that its constructor gave it, behind layers that learn. Or a gradient arrives
and is zero in every element and step, while other weights learn: a note where the run does its job.
Fix: find what cuts the graph behind the named layer, or at the line of the loss.
Silent: for parameters that no optimizer has, for frozen layers before those that learn (a backbone)
where the run does learn or a layer was replaced after the optimizer was made
(`stale-optimizer`), or that were frozen while it went on, for modules that were not called
(`unused-module`), for experts that are idle, for layers whose output goes nowhere (the last
residual branch of a WaveNet: a note), for gradients that are sparse, for weights that move all the
same, for a part that was loaded and is run without gradients, and for a bias that a gradient
of a gradient does not depend on (forces as gradients of an energy).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.phrases import backward_line, optimizer_lines, some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.graph import Graph, graph_of
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.zero_gradients import ZERO_READS, of_zeros
from nethook.runs.names import BACKWARDS, EMPTY_GRADIENTS, FORWARDS, OPTIMIZER_STEPS, PARAMETERS


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 5  # steps without a gradient
    called: float = 0.5  # of the steps in which its module was called


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding, with every parameter that is cut off."""
    parameters = history.parameters
    fed = [parameter for parameter in parameters if parameter.fact("with_grad", 0) > 0]
    if not fed:
        yield from _nothing_learns(history, limit)
        return
    graph = graph_of(history)
    calls = {module.address: _training_calls(module) for module in history.modules}
    cut = [parameter for parameter in parameters if _is_cut_off(parameter, calls, limit)]
    if graph.second_order:
        learning = {owner for parameter in fed for owner in parameter.fact("owners", [])}
        cut = [one for one in cut if not learning & set(one.fact("owners", []))]
    frozen = [parameter for parameter in cut if parameter.fact("requires_grad") is False]
    replaced = bool(graph.registered) and any(one.orphans for one in graph.stale)
    if frozen and (
        replaced  # what is not learnt is what replaced a layer: `stale-optimizer` says so
        or _is_meant(history, frozen, fed)
        or _frozen_on_purpose(history, frozen, graph)
    ):
        cut = [parameter for parameter in cut if parameter.fact("requires_grad") is not False]
        frozen = []
    loaded = [parameter for parameter in cut if parameter.fact("filled")]
    if loaded and _is_meant(history, loaded, fed):
        cut = [parameter for parameter in cut if not parameter.fact("filled")]
    ends = _dead_ends(history)
    nowhere = [one for one in cut if ends & set(one.fact("owners", []))]
    if nowhere and len(nowhere) == len(cut):
        yield _goes_nowhere(history, nowhere)
        return
    cut = [one for one in cut if one not in nowhere]
    if not cut:
        found = list(_through_data(history, limit)) or list(of_zeros(history, graph))
        yield from found or _frozen_end(history, fed, calls, limit)
        return
    sites = tuple(parameter.address for parameter in cut)
    steps = max(int(parameter.fact("steps", 0)) for parameter in cut)
    if len(frozen) == len(cut):
        why = "although the optimizer has them: requires_grad is False"
        fix = "Set requires_grad_(True) on them, or leave them out of the optimizer."
    else:
        why = "although the layers were called: the graph is cut behind them"
        fix = (
            "Look for .detach(), .data, .numpy(), .item(), torch.tensor(...) or torch.no_grad() "
            f"between {_owner(cut[-1])} and the loss."
        )
    yield Finding(
        "no-gradient",
        "error",
        f"{some(sites, 'parameter')} never got a gradient in {steps} steps, {why}.",
        fix,
        sites=sites,
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence={
            "steps without a gradient": Evidence(steps, limit.steps),
            "parameters with gradients": Evidence(len(fed)),
        },
    )


def _through_data(history: History, limit: Thresholds) -> Iterator[Finding]:
    """Parameters that a forward reads through `.data`, and that get no gradient."""
    read = {str(name) for op in _ops(history) for name in op.get("data_of") or ()}
    cut = [
        parameter
        for parameter in history.parameters
        if parameter.address in read
        and not parameter.fact("with_grad", 0)
        and int(parameter.fact("steps", 0)) >= limit.steps
        and parameter.fact("groups")
        and not (parameter.fact("moved") or [0])[0]
    ]
    if not cut:
        return
    sites = tuple(parameter.address for parameter in cut)
    yield Finding(
        "no-gradient",
        "error",
        f"{some(sites, 'parameter')} never got a gradient: the forward reads "
        f"{'it' if len(sites) == 1 else 'them'} through .data or .detach(), which autograd does "
        "not see, and the optimizer has nothing to step on.",
        "Call the layer, or use its weight itself: layer.weight, without .data.",
        sites=sites,
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence={"parameters read through .data": Evidence(len(cut), 1)},
    )


def _ops(history: History) -> list[dict[str, Any]]:
    """The operations of all models."""
    ops = history.info("ops", [])
    lists = ops.values() if isinstance(ops, dict) else [ops]
    return [op for one in lists for op in one if isinstance(op, dict)]


def _frozen_on_purpose(history: History, frozen: list[SiteFacts], graph: Graph) -> bool:
    """Whether layers were frozen while the run went on, or others came to be trained instead."""
    names: set[str] = set()
    for event in history.events(PARAMETERS):
        changed = (event.data or {}).get("requires_grad")
        if isinstance(changed, dict):
            names |= {str(name) for name, required in changed.items() if not required}
    if all(parameter.address in names for parameter in frozen):
        return True
    known = {parameter.address for parameter in history.parameters}
    return any(one.where not in known for one in graph.registered)


def _dead_ends(history: History) -> set[str]:
    """Modules whose results reach nothing that the first pass has returned.

    A graph that was cut is no dead end: `detach` is an operation as well, and behind `.data` there
    is one that takes a tensor from nowhere. Inputs of the model come from nowhere as well, and so
    do masks that are made on the way: an operation says whether it was given anything else (`odd`;
    of older runs that is not known).
    """
    ops = [op for op in history.info("ops", []) if isinstance(op, dict)]
    reach: set[int] = {len(ops) - 1} if ops else set()
    known = any("odd" in op for op in ops)
    from_nowhere = max(
        (at for at, op in enumerate(ops) if (op.get("odd") if known else not op.get("from"))),
        default=-1,
    )
    for at in range(len(ops) - 1, -1, -1):
        if at in reach:
            reach.update(one for one in ops[at].get("from") or [] if isinstance(one, int))
    alive = {str(ops[at].get("site")) for at in reach if 0 <= at < len(ops)}
    return {str(op.get("site")) for op in ops[from_nowhere + 1 :]} - alive


def _goes_nowhere(history: History, parameters: list[SiteFacts]) -> Finding:
    sites = tuple(parameter.address for parameter in parameters)
    return Finding(
        "no-gradient",
        "info",
        f"{some(sites, 'parameter')} never got a gradient: what the layer computes is not used.",
        "Leave the layer out, or use its output.",
        sites=sites,
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence={"parameters whose output is not used": Evidence(len(parameters))},
    )


def _nothing_learns(history: History, limit: Thresholds) -> Iterator[Finding]:
    """No parameter has ever had a gradient, although backward passes ran and optimizers stepped."""
    graph = graph_of(history)
    held = [
        parameter
        for parameter in history.parameters
        if parameter.fact("groups") and parameter.fact("requires_grad") is not False
    ]
    passes = history.loop(BACKWARDS).total
    steps = history.loop(OPTIMIZER_STEPS).total
    still = not any((parameter.fact("moved") or [0])[0] for parameter in held)
    if held and still and passes == 0 and steps >= limit.steps:
        yield from _never_asked(history, held, steps, limit)
        return
    cut = graph.looks > 0 and graph.without == graph.looks
    if not (held and still and cut and min(passes, steps) >= limit.steps):
        return
    lines = tuple(graph.leaf_roots)
    sites = tuple(parameter.address for parameter in held)
    yield Finding(
        "no-gradient",
        "error",
        f"{passes:.0f} backward passes{backward_line(history)} brought no gradient to any of the "
        f"{len(held)} parameters that the optimizer has: {_why(graph)}.",
        "Look between the model's output and the loss for .data, .detach(), .item(), .numpy(), "
        "torch.tensor(...) or torch.no_grad(); a loss that is wrapped anew, or given "
        "requires_grad, has forgotten how it was made.",
        sites=sites,
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence={
            "backward passes": Evidence(passes, limit.steps),
            "parameters with gradients": Evidence(0, 1),
        },
        lines=lines or _sources(history),
    )


def _never_asked(
    history: History, held: list[SiteFacts], steps: float, limit: Thresholds
) -> Iterator[Finding]:
    """An optimizer steps, no backward pass has ever run, and nobody has set a gradient by hand."""
    empty = history.loop(EMPTY_GRADIENTS, "min")
    if not len(empty) or empty.value.min() < 1 or not history.loop(FORWARDS).total:
        return  # of a model that is never called, another one may be trained: `stale-optimizer`
    yield Finding(
        "no-gradient",
        "error",
        f"the optimizer made {steps:.0f} steps, and no backward pass was ever run: none of its "
        f"{len(held)} parameters has a gradient, and the weights are what they were at the start.",
        "Call loss.backward() before optimizer.step(), on every loss that is to be learnt from.",
        sites=tuple(parameter.address for parameter in held),
        first_step=history.first_step,
        last_step=max(history.steps - 1, history.first_step),
        evidence={
            "backward passes": Evidence(0, 1),
            "steps without a gradient": Evidence(steps, limit.steps),
        },
        lines=optimizer_lines(history),
    )


def _why(graph: Graph) -> str:
    if graph.leaf_roots:
        return "the loss is a tensor that no operation has made"
    return "the loss does not depend on the model"


def _sources(history: History) -> tuple[str, ...]:
    return tuple(dict.fromkeys(record.name.partition("#")[0] for record in history.records()))


def _frozen_end(
    history: History, fed: list[SiteFacts], calls: dict[str, int], limit: Thresholds
) -> Iterator[Finding]:
    """The last layer is frozen as its constructor made it, and what learns stands before it."""
    learning = {str(owner) for parameter in fed for owner in parameter.fact("owners", [])}
    frozen = [
        parameter
        for parameter in history.parameters
        if parameter.fact("requires_grad") is False
        and parameter.fact("untouched")
        and not parameter.fact("groups")
        and not (parameter.fact("moved") or [0])[0]
        and len(parameter.fact("shape", [])) >= 2
        and not learning & set(parameter.fact("owners", []))
        and any(calls.get(owner, 0) >= limit.steps for owner in parameter.fact("owners", []))
    ]
    ends = _behind_all(history, learning)
    last = [one for one in frozen if ends & set(one.fact("owners", []))]
    if not last:
        return
    sites = tuple(parameter.address for parameter in last)
    yield Finding(
        "no-gradient",
        "warning",
        f"{some(sites, 'parameter')}, behind all layers that learn, has requires_grad=False and "
        "stays at the random weights that its constructor gave it.",
        "Was a layer before it to be frozen? Set requires_grad_(True) on this one, and give it to "
        "the optimizer.",
        sites=sites,
        first_step=history.first_step,
        last_step=history.steps - 1,
        evidence={"layers that are frozen at random": Evidence(len(last), 1)},
    )


def _behind_all(history: History, learning: set[str]) -> set[str]:
    """Modules that use what a learning one has made, and whose results no learning one uses."""
    given = history.info("ops", [])
    ops: list[dict[str, Any]] = (
        [op for op in given if isinstance(op, dict)] if isinstance(given, list) else []
    )
    before: list[set[int]] = []
    used: set[int] = set()
    after: set[int] = set()
    for index, op in enumerate(ops):
        sources = [
            source for source in op.get("from") or [] if isinstance(source, int) and source < index
        ]
        behind = set(sources).union(*(before[source] for source in sources))
        before.append(behind)
        if str(op.get("site")) in learning:
            used |= behind
        elif any(str(ops[source].get("site")) in learning for source in behind):
            after.add(index)
    left = {str(ops[index].get("site")) for index in after - used}
    return left - {str(ops[index].get("site")) for index in used}


def _is_cut_off(parameter: SiteFacts, calls: dict[str, int], limit: Thresholds) -> bool:
    steps = int(parameter.fact("steps", 0))
    if parameter.fact("with_grad", 0) > 0 or steps < limit.steps:
        return False
    # What moves is moved by a gradient, of a kind that is not counted (a sparse one).
    if (parameter.fact("moved") or [0])[0] > 0:
        return False
    # Out of every optimizer is left alone on purpose; in one, somebody wants it to learn.
    if not parameter.fact("groups"):
        return False
    owners = parameter.fact("owners", [])
    return any(calls.get(owner, 0) >= limit.called * steps for owner in owners)


def _is_meant(history: History, idle: list[SiteFacts], fed: list[SiteFacts]) -> bool:
    """Whether what does not learn lies before all that does, in a run that learns: a backbone."""
    calls = {
        module.address: int(module.fact("first_call"))
        for module in history.modules
        if module.fact("first_call") is not None
    }
    orders = [
        [
            calls[owner]
            for parameter in group
            for owner in parameter.fact("owners", [])
            if owner in calls
        ]
        for group in (idle, fed)
    ]
    went = progress(history)
    learns = went is None or went.improves
    return learns and all(orders) and max(orders[0]) < max(orders[1])


def _training_calls(module: SiteFacts) -> int:
    calls = module.fact("calls", {})
    return int(calls.get("train", 0)) if isinstance(calls, dict) else 0


def _owner(parameter: SiteFacts) -> str:
    owners = parameter.fact("owners", [])
    return f"`{owners[0]}`" if owners and owners[0] else f"`{parameter.address}`"


RULE = Rule(
    "no-gradient",
    Cause.LOOP,
    look,
    reads=tuple(
        dict.fromkeys(
            (
                *PROGRESS_READS,
                *ZERO_READS,
                "event.groups",
                "event.parameters",
                "info.graph",
                "info.ops",
                "loss.source",
                "module.calls",
                "module.first_call",
                "parameter.filled",
                "parameter.groups",
                "parameter.moved",
                "parameter.owners",
                "parameter.requires_grad",
                "parameter.shape",
                "parameter.steps",
                "parameter.untouched",
                "parameter.with_grad",
                "series.@loop.backwards.mean",
                "series.@loop.empty_gradients.min",
                "series.@loop.forwards.mean",
                "series.@loop.optimizer_steps.mean",
            )
        )
    ),
    defaults=Thresholds(),
)
