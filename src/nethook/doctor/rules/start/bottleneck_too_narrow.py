"""All that the network knows of a sample goes through one number.

Cause: a hidden layer with a single unit between wider ones, often a width that was given to the
wrong layer.
Evidence: a linear layer with several inputs and one output, whose result goes, through activations
and norms alone, into a linear layer with one input and several outputs; and a loss that ends well
above zero. A note where the run does its job.
Fix: a wider layer.
Silent: where the loss falls far below what one answer for all inputs would score, where the target
is the input (a code of one number), and where the narrow way is one of several (gates, skips).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.kinds.operations import LINEAR_LAYERS


class Thresholds(NamedTuple):
    """What may be changed."""

    units: float = 1  # of the narrow layer
    wide: float = 4  # inputs of it, and outputs of the next one


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    went = progress(history)
    if went is None or went.does_well or _copies_its_input(history):
        return
    for narrow, behind in _narrow_pairs(history, limit):
        shape = narrow.fact("shape", [])
        layer, after = (one.address.rpartition(".")[0] for one in (narrow, behind))
        yield Finding(
            "bottleneck-too-narrow",
            "info" if went.does_its_job else "warning",
            f"`{layer}` makes one number of its {shape[1]} inputs, and `{after}` makes "
            f"{behind.fact('shape', [0])[0]} of that one: all that lies behind it sees one number "
            f"per sample. The loss ends at {went.end:.3g}.",
            f"Give `{layer}` more units, at least as many as there are inputs that matter.",
            sites=(layer,),
            first_step=history.first_step,
            last_step=history.steps - 1,
            evidence={"units of the narrow layer": Evidence(float(shape[0]), limit.units)},
        )
        return


def _narrow_pairs(history: History, limit: Thresholds) -> Iterator[tuple[SiteFacts, SiteFacts]]:
    """Weights of two layers with next to nothing between them, from the operations of a pass."""
    ops = [op for op in history.info("ops", []) if isinstance(op, dict)]
    weights = {
        owner: parameter
        for parameter in history.parameters
        if len(parameter.fact("shape", [])) == 2
        for owner in parameter.fact("owners", [])
    }
    behind: dict[int, int] = {}  # operation -> the layer that it is a function of, and of no other
    for index, op in enumerate(ops):
        sources = set(op.get("from") or [])
        if op.get("op") in LINEAR_LAYERS and str(op.get("site")) in weights:
            before = behind.get(next(iter(sources))) if len(sources) == 1 else None
            if before is not None:
                pair = weights[str(ops[before]["site"])], weights[str(op["site"])]
                if _is_narrow(*pair, limit) and not _is_shared(ops, before, index):
                    yield pair
            behind[index] = index
        elif len(sources) == 1 and (at := next(iter(sources))) in behind and _passes(op):
            behind[index] = behind[at]


def _passes(op: dict[str, object]) -> bool:
    """Whether an operation takes nothing else than one result; of a norm, its statistics."""
    return not op.get("odd") or "norm" in str(op.get("op"))


def _is_narrow(first: SiteFacts, second: SiteFacts, limit: Thresholds) -> bool:
    one, two = first.fact("shape", []), second.fact("shape", [])
    return bool(
        one[0] <= limit.units and two[1] == one[0] and one[1] >= limit.wide and two[0] >= limit.wide
    )


def _is_shared(ops: list[dict[str, object]], first: int, last: int) -> bool:
    """Whether what comes before the narrow layer goes another way as well."""
    before = ops[first].get("from")
    sources = set(before) if isinstance(before, list) else set()
    for index, op in enumerate(ops):
        taken = op.get("from")
        if index != first and isinstance(taken, list) and sources & set(taken):
            return True
    # An input of the model has no operation: whatever else takes one may take the same.
    norms = {op.get("site") for op in ops if "norm" in str(op.get("op"))}  # they count batches
    between = [op for op in ops[first + 1 : last + 1] if op.get("site") not in norms]
    return not sources and any(not op.get("from") for op in between)


def _copies_its_input(history: History) -> bool:
    return any(one.outcome == "found" for one in history.examined("what the target is"))


RULE = Rule(
    "bottleneck-too-narrow",
    Cause.START,
    look,
    reads=(
        *PROGRESS_READS,
        "examined.what the target is",
        "info.ops",
        "parameter.owners",
        "parameter.shape",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
