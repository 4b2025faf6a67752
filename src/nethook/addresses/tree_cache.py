"""What a plain model looks like, remembered from one walk over it to the next.

A scope that is opened in every step walks the model in every step, and the model is nearly always
as it was. So a model whose modules are neither shared nor wrapped nor parametrised is compared with
what is remembered of it, level by level, in few steps of the interpreter; addresses, and answers
to questions such as what a pattern matches, are taken from memory. Nothing that is remembered holds
a module.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import Any, Final, TypeVar

from torch import nn

from nethook.torch_private import children_of

T = TypeVar("T")

# Per model; a script has a handful. One that makes up a new pattern at every step fills no memory.
_MOST_ANSWERS: Final = 64


class Structure:
    """Names and classes of the modules of one model; no module."""

    __slots__ = (
        "_arranged", "_distinct", "_known", "_names", "_types", "addresses", "classes",
    )  # fmt: skip

    def __init__(
        self, addresses: list[str], modules: list[nn.Module], classes: dict[type[nn.Module], bool],
        by_level: list[nn.Module], names: list[list[str]],
    ) -> None:  # fmt: skip
        self.addresses = addresses  # in model order, as `modules`
        self.classes = classes
        self._known: dict[Hashable, Any] = {}
        self._names = names  # of what lies below each, level by level
        self._types = list(map(type, by_level))
        # Modules are hashed by their identity, unless a class says otherwise.
        hashed = all(cls.__hash__ is object.__hash__ for cls in classes)
        self._distinct: Callable[[list[nn.Module]], set[Any]] = set if hashed else _identities
        indices = {id(module): index for index, module in enumerate(by_level)}
        order = [indices[id(module)] for module in modules]
        # From the order of levels to that of the model; None where they are the same.
        self._arranged = None if order == list(range(len(order))) else itemgetter(*order)

    def modules_of(self, model: nn.Module) -> list[nn.Module] | None:
        """The modules of a model in model order, if it still looks like this; None otherwise."""
        modules = [model]
        try:
            # The list grows while it is read, level by level, and no further than the names go.
            for below, names in zip(map(children_of, modules), self._names, strict=False):
                if below:
                    if [*below] != names:
                        return None
                    modules += below.values()  # type: ignore[arg-type]  # None is met in its turn
                elif names:
                    return None
        except (AttributeError, KeyError):  # one of them is None, or a script with names of its own
            return None
        if list(map(type, modules)) != self._types or len(self._distinct(modules)) != len(modules):
            return None  # another class, or one that is shared now
        return modules if self._arranged is None else list(self._arranged(modules))

    def once(self, question: Hashable, answer: Callable[[], T]) -> T:
        """The answer to a question that is about names and classes alone; it is asked for once."""
        try:
            known: T = self._known[question]
        except KeyError:
            known = answer()
            if len(self._known) >= _MOST_ANSWERS:
                self._known.clear()
            self._known[question] = known
        return known


def _identities(modules: list[nn.Module]) -> set[int]:
    return set(map(id, modules))


def _by_level(model: nn.Module, at_most: int) -> tuple[list[nn.Module], list[list[str]]] | None:
    """The modules level by level, and the names of what lies below each.

    None where there are more than `at_most`: a module that has itself below it has no end.
    """
    modules = [model]
    names: list[list[str]] = []
    try:
        for module in modules:  # it grows meanwhile
            below = children_of(module)
            names.append([*below])
            modules += below.values()  # type: ignore[arg-type]
            if len(modules) > at_most:
                return None
    except (AttributeError, KeyError):  # as above
        return None
    return modules, names


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
    levels = _by_level(model, at_most=len(modules))
    if levels is None:
        return None
    structure = Structure(addresses, modules, classes, *levels)
    key = id(model)

    def forget(gone: weakref.ref[nn.Module]) -> None:
        entry = _remembered.get(key)
        if entry is not None and entry[0] is gone:
            del _remembered[key]

    _remembered[key] = (weakref.ref(model, forget), structure)
    return structure
