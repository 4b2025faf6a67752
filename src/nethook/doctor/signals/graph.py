"""Who gets a gradient and who is in an optimizer, as rules read it from the run's fact `graph`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from nethook.doctor.history import History

IN_CONTAINERS: Final = ("list", "dict", "tuple", "set", "function")
"""Where a module keeps parts that it does not register."""
_LOOKS: Final = 3
"""Graphs in which a leaf was met before anything is said of it."""


class Loose(NamedTuple):
    """Parameters that get gradients and are in no optimizer."""

    how: str
    """`registered`, or as `graph.others` has it."""
    where: str
    kind: str
    line: str
    parameters: int
    elements: int
    since: int
    filled: bool
    """Loaded, or trained before: more than a random start."""
    training: bool


class Stepper(NamedTuple):
    """An optimizer."""

    kind: str
    line: str
    steps: int
    parameters: int
    orphans: int
    """What it holds that is in no graph and in no network any more."""


class Graph(NamedTuple):
    """What is known of the graphs of a run."""

    looks: int
    without: int
    """Looks in which no parameter of the models was a leaf."""
    leaf_roots: Mapping[str, int]
    """Lines that ran a backward pass on a tensor that no operation made."""
    tensors: int
    """Leaves of no module: inputs, an image that is optimized."""
    second_order: bool
    loose: tuple[Loose, ...]
    """Those that stay where they are: no optimizer has them, and no other code moves them."""
    moved: bool
    """Whether something without an optimizer is moved by other code."""
    optimizers: tuple[Stepper, ...]
    attributes: tuple[Mapping[str, Any], ...]
    born: Mapping[str, Any]
    """Parameters that were made in the forward, and were gone after it."""
    loads: tuple[Mapping[str, Any], ...]
    """Calls of `load_state_dict` that gave a model its own tensors."""
    same_loads: tuple[Mapping[str, Any], ...] = ()
    """Modules that were given the state that they had, again and again."""
    unmatched_loads: tuple[Mapping[str, Any], ...] = ()
    """Loads in which not one name was that of a parameter."""
    lost_loads: tuple[Mapping[str, Any], ...] = ()
    """Loads of which every weight was replaced before the first step."""
    plain: tuple[Mapping[str, Any], ...] = ()
    """Tensors that lie in modules as attributes, look like weights, and never change."""

    critics: Mapping[str, int] = {}
    """Lines whose loss weighs a policy by a critic that is not detached."""

    @property
    def stale(self) -> tuple[Stepper, ...]:
        """Optimizers that step on what is in no graph and no network any more."""
        return tuple(one for one in self.optimizers if one.orphans and one.steps >= _LOOKS)

    @property
    def registered(self) -> tuple[Loose, ...]:
        """Parameters of the models that stay where they are."""
        return tuple(one for one in self.loose if one.how == "registered")


NOTHING: Final = Graph(0, 0, {}, 0, False, (), False, (), (), {}, ())


def graph_of(history: History) -> Graph:
    """What is known; nothing of an older run."""
    return history.once("graph", _read)


def _read(history: History) -> Graph:
    facts = history.info("graph")
    if not isinstance(facts, Mapping):
        return NOTHING
    unheld = [
        {**one, "how": "registered", "where": one.get("address")} for one in _list(facts, "unheld")
    ]
    entries = [*unheld, *_list(facts, "others")]
    loose = tuple(_loose(one) for one in entries if _stays(one))
    return Graph(
        int(facts.get("looks", 0)),
        int(facts.get("without", 0)),
        dict(facts.get("leaf_roots") or {}),
        int(facts.get("tensors", 0)),
        bool(facts.get("second_order")),
        loose,
        any(one.get("moved") for one in entries),
        tuple(_stepper(one) for one in _list(facts, "optimizers")),
        tuple(_list(facts, "attributes")),
        dict(facts.get("born") or {}),
        tuple(_list(facts, "loads")),
        tuple(_list(facts, "same_loads")),
        tuple(_list(facts, "unmatched_loads")),
        tuple(_list(facts, "lost_loads")),
        tuple(_list(facts, "plain")),
        {
            str(line): count
            for line, count in (facts.get("critics") or {}).items()
            if isinstance(count, int)
        },
    )


def _list(facts: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return [one for one in facts.get(name) or () if isinstance(one, Mapping)]


def _stays(entry: Mapping[str, Any]) -> bool:
    return not entry.get("moved") and int(entry.get("looks", 0)) >= _LOOKS


def _loose(entry: Mapping[str, Any]) -> Loose:
    return Loose(
        str(entry.get("how", "")),
        str(entry.get("where") or ""),
        str(entry.get("kind", "")),
        str(entry.get("line", "")),
        int(entry.get("parameters", 1)),
        int(entry.get("elements", 0)),
        int(entry.get("since", 0)),
        bool(entry.get("filled")),
        bool(entry.get("training", True)),
    )


def _stepper(entry: Mapping[str, Any]) -> Stepper:
    return Stepper(
        str(entry.get("type", "")),
        str(entry.get("line", "")),
        int(entry.get("steps", 0)),
        int(entry.get("parameters", 0)),
        int(entry.get("orphans", 0)),
    )
