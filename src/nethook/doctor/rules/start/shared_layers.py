"""One layer stands at several places of a list.

Cause: a list of layers was made by multiplication, `nn.ModuleList([nn.Linear(8, 8)] * 4)`: Python
repeats the reference, and there is one layer with one set of weights.
Evidence: one module with parameters has several places in one `ModuleList`, `ModuleDict` or
`Sequential`. That may be meant, so it is a question.
Fix: make a layer for each place: `nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])`.
Silent: for modules without parameters (one ReLU for all), for a module that is called several times
from one place, for layers that share a weight, and for a module that two attributes, or two lists,
have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.rule import Cause, Rule

_LISTS: Final = ("ModuleList", "ModuleDict", "Sequential")


class Thresholds(NamedTuple):
    """What may be changed."""

    places: float = 2  # of one module in one list
    steps: float = 3


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    if history.steps < limit.steps:
        return
    kinds = {module.address: module.kind for module in history.modules}
    owners = {
        str(owner) for parameter in history.parameters for owner in parameter.fact("owners", [])
    }
    shared = [
        (module, places)
        for module in history.modules
        if len(places := _places(module, kinds)) >= limit.places
        and any(owner == module.address or owner.startswith(f"{module.address}.")
                for owner in owners)
    ]  # fmt: skip
    if not shared:
        return
    module, places = max(shared, key=lambda pair: len(pair[1]))
    parent = places[0].rpartition(".")[0]
    where = f"`{parent}`" if parent else "the model"
    others = "" if len(shared) == 1 else f" ({len(shared)} layers in all are shared so)"
    yield Finding(
        "shared-layers",
        "info",
        f"{len(places)} places of {where} (`{places[0]}` to `{places[-1]}`) are one and the same "
        f"{module.kind}: they share one set of weights{others}. Is that meant? A list that is "
        "multiplied, [layer] * n, repeats one layer.",
        "If each place is to learn for itself: "
        f"[{module.kind}(...) for _ in range({len(places)})].",
        sites=tuple(places),
        first_step=history.first_step,
        last_step=max(history.steps - 1, history.first_step),
        evidence={"places of one layer": Evidence(len(places), limit.places)},
    )


def _places(module: SiteFacts, kinds: dict[str, str]) -> list[str]:
    """The places of a module in the one list that has it most often."""
    names = [str(name) for name in module.fact("names", [])]
    if len(names) < 2 or not module.address.endswith(names[0]):
        return []
    prefix = module.address[: len(module.address) - len(names[0])]
    lists: dict[str, list[str]] = {}
    for name in names:
        place = f"{prefix}{name}"
        lists.setdefault(place.rpartition(".")[0], []).append(place)
    fitting = [places for parent, places in lists.items() if kinds.get(parent) in _LISTS]
    return max(fitting, key=len, default=[])


RULE = Rule(
    "shared-layers",
    Cause.START,
    look,
    reads=(
        "module.names",
        "parameter.owners",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
