"""What a plain model looks like, remembered from one walk over it to the next.

A scope that is opened in every step walks the model in every step, and the model is nearly always
as it was. So a model whose modules are neither shared nor wrapped nor parametrised is compared with
what is remembered of it, level by level, in few steps of the interpreter; addresses, and what
patterns matched, are taken from memory. Nothing that is remembered holds a module.
"""

from __future__ import annotations

import re
import weakref
from itertools import chain
from typing import Final, TypeAlias

from torch import nn

from nethook.torch_private import children_of

# Per model; a script has a handful. One that makes up a new pattern at every step fills no memory.
_MOST_PATTERNS: Final = 64
_Levels: TypeAlias = tuple[list[nn.Module], list[str], list[int]]


class Structure:
    """Names and classes of the modules of one model; no module."""

    __slots__ = ("_counts", "_keys", "_matches", "_order", "_types", "addresses", "classes")

    def __init__(
        self, addresses: list[str], modules: list[nn.Module], classes: dict[type[nn.Module], bool],
        levels: _Levels,
    ) -> None:  # fmt: skip
        self.addresses = addresses  # in model order, as `modules`
        self.classes = classes
        self._matches: dict[re.Pattern[str], list[int]] = {}
        by_level, self._keys, self._counts = levels
        self._types = list(map(type, by_level))
        indices = {id(module): index for index, module in enumerate(by_level)}
        order = [indices[id(module)] for module in modules]
        self._order = None if order == list(range(len(order))) else order  # None: level by level

    def modules_of(self, model: nn.Module) -> list[nn.Module] | None:
        """The modules of a model in model order, if it still looks like this; None otherwise."""
        levels = _levels(model, at_most=len(self._types))
        if levels is None:
            return None
        by_level, keys, counts = levels
        if (
            keys != self._keys
            or counts != self._counts
            or list(map(type, by_level)) != self._types
            or len(set(map(id, by_level))) != len(by_level)  # one of them is shared now
        ):
            return None
        return by_level if self._order is None else [by_level[index] for index in self._order]

    def matching(self, expression: re.Pattern[str]) -> list[int]:
        """The orders of the modules whose address matches as a whole."""
        orders = self._matches.get(expression)
        if orders is None:
            if len(self._matches) >= _MOST_PATTERNS:
                self._matches.clear()
            matches = expression.fullmatch
            orders = [order for order, name in enumerate(self.addresses) if matches(name)]
            self._matches[expression] = orders
        return orders


def _levels(model: nn.Module, at_most: int) -> _Levels | None:
    """The modules level by level, their names, and how many lie below each.

    None where there are more than `at_most`: a module that has itself below it has no end.
    """
    level = [model]
    modules = [model]
    keys: list[str] = []
    counts: list[int] = []
    try:
        while level:
            below = [children_of(module) for module in level]
            counts += map(len, below)
            below = [children for children in below if children]
            keys += chain.from_iterable(below)
            level = [module for children in below for module in children.values()]  # type: ignore[misc]
            modules += level
            if len(modules) > at_most:
                return None
    except (AttributeError, KeyError):  # one of them is None, or a script with names of its own
        return None
    return modules, keys, counts


# By id of the model, which a model with an `__eq__` of its own has as well; a model that dies takes
# its entry with it.
_remembered: Final[dict[int, tuple[weakref.ref[nn.Module], Structure]]] = {}


def recall(model: nn.Module) -> tuple[Structure, list[nn.Module]] | None:
    """What a model looked like and its modules now; None where it is unknown or has changed."""
    entry = _remembered.get(id(model))
    if entry is None or entry[0]() is not model:
        return None
    modules = entry[1].modules_of(model)
    return None if modules is None else (entry[1], modules)


def remember(
    model: nn.Module, addresses: list[str], modules: list[nn.Module],
    classes: dict[type[nn.Module], bool],
) -> Structure | None:  # fmt: skip
    """Keeps what a plain model looks like; None where that cannot be compared later.

    None of its modules may be shared or None.
    """
    levels = _levels(model, at_most=len(modules))
    if levels is None:
        return None
    structure = Structure(addresses, modules, classes, levels)
    key = id(model)

    def forget(gone: weakref.ref[nn.Module]) -> None:
        entry = _remembered.get(key)
        if entry is not None and entry[0] is gone:
            del _remembered[key]

    _remembered[key] = (weakref.ref(model, forget), structure)
    return structure
