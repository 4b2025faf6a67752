"""Tensors inside nested values: found, replaced, and the value rebuilt with its type intact.

Tuples, named tuples, lists, dicts, dataclasses and `ModelOutput`s are opened; everything else
(None, numbers, strings, caches, objects of the user's) is left as it is. Each tensor has a path
from the value that holds it: `[0]`, `["logits"]`, `.logits`; the path of a bare tensor is empty.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, MutableMapping
from types import MappingProxyType
from typing import Any

import torch

from nethook.addresses.paths import Attribute, Item, Path

_NO_PATH: Path = ()
_DATACLASS = "__dataclass_fields__"  # what `dataclasses.is_dataclass` looks at


def tensors(value: object) -> list[tuple[Path, torch.Tensor]]:
    """Every tensor in `value` with its path, in order."""
    if isinstance(value, torch.Tensor):
        return [(_NO_PATH, value)]
    found: list[tuple[Path, torch.Tensor]] = []
    _collect(value, _NO_PATH, found, set())
    return found


def _collect(
    value: object, path: Path, found: list[tuple[Path, torch.Tensor]], above: set[int]
) -> None:
    if isinstance(value, torch.Tensor):
        found.append((path, value))
        return
    children = _children(value)
    if children is None or id(value) in above:  # a list may hold itself
        return
    above.add(id(value))
    for step, child in children:
        _collect(child, (*path, step), found, above)
    above.discard(id(value))


def map_tensors(
    function: Callable[[torch.Tensor], Any], value: Any, other: Callable[[Any], Any] | None = None
) -> Any:
    """`value` with each tensor replaced by `function(tensor)`, in order.

    Containers keep their type, and a container in which nothing was replaced is returned itself.
    `other` is applied to what is neither a tensor nor a container.
    """
    if isinstance(value, torch.Tensor):
        return function(value)
    return _map(value, function, other, set())


def _map(
    value: Any,
    function: Callable[[torch.Tensor], Any],
    other: Callable[[Any], Any] | None,
    above: set[int],
) -> Any:
    if isinstance(value, torch.Tensor):
        return function(value)
    children = _children(value)
    if children is None or id(value) in above:
        return value if other is None else other(value)
    above.add(id(value))
    old = list(children)
    new = [_map(child, function, other, above) for _, child in old]
    above.discard(id(value))
    if all(was is now for (_, was), now in zip(old, new, strict=True)):
        return value
    return _rebuild(value, old, new)


def _children(value: object) -> Iterator[tuple[Attribute | Item, Any]] | None:
    """What lies directly inside a container; None for what is no container."""
    if isinstance(value, tuple):
        if isinstance(value, torch.Size):
            return None  # it holds numbers, and can hold nothing else
        fields = getattr(value, "_fields", None)
        if fields is not None:
            return ((Attribute(name), child) for name, child in zip(fields, value, strict=True))
        return ((Item(index), child) for index, child in enumerate(value))
    if isinstance(value, list):
        return ((Item(index), child) for index, child in enumerate(value))
    if isinstance(value, MutableMapping | MappingProxyType):  # others could not be rebuilt
        # A ModelOutput is a dataclass as well, and read by attribute.
        step: type[Attribute | Item] = Attribute if hasattr(value, _DATACLASS) else Item
        return ((step(key), value[key]) for key in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return (
            (Attribute(field.name), getattr(value, field.name))
            for field in dataclasses.fields(value)
            if hasattr(value, field.name)  # a field may be left unset (init=False)
        )
    return None


def _rebuild(value: Any, old: list[tuple[Attribute | Item, Any]], new: list[Any]) -> Any:
    """A container like `value`, holding `new` where it held `old`."""
    if isinstance(value, tuple):
        return _rebuild_tuple(value, new)
    if isinstance(value, MappingProxyType):
        return MappingProxyType({step.key: now for (step, _), now in zip(old, new, strict=True)})
    # A shallow copy keeps what a constructor would lose: default factories, extra attributes,
    # fields that are set late, the ordering of keys.
    twin = copy.copy(value)
    if isinstance(value, list):
        twin[:] = new
        return twin
    for (step, was), now in zip(old, new, strict=True):
        if was is now:
            continue
        if isinstance(value, MutableMapping):
            twin[step.key] = now
        else:
            object.__setattr__(twin, step.key, now)  # also where the dataclass is frozen
    return twin


def _rebuild_tuple(value: Any, new: list[Any]) -> Any:
    if type(value) is tuple:
        return tuple(new)
    try:
        # Past the constructor: that of a subclass may want other arguments.
        twin: Any = tuple.__new__(type(value), new)
    except TypeError:
        return type(value)(new)  # what torch.max returns insists on its own
    if hasattr(value, "__dict__"):
        twin.__dict__.update(vars(value))
    return twin


def replace(value: Any, path: Path, new: Any) -> Any:
    """`value` with what lies at `path` replaced by `new`; containers on the way are rebuilt."""
    if not path:
        return new
    children = _children(value)
    old = [] if children is None else list(children)
    step = _same_step(path[0], [each for each, _ in old], value)
    now = [replace(child, path[1:], new) if each == step else child for each, child in old]
    return _rebuild(value, old, now)


def get(value: Any, path: Path) -> Any:
    """What lies at `path` inside `value`. Both spellings of a field are accepted."""
    for step in path:
        children = _children(value)
        inside = {} if children is None else dict(children)
        value = inside[_same_step(step, list(inside), value)]
    return value


def _same_step(
    step: Attribute | Item, steps: list[Attribute | Item], value: object
) -> Attribute | Item:
    """The step among `steps` that `step` means: `.logits`, `["logits"]`, `[0]`, `[-1]`."""
    if step in steps:
        return step
    other = Item(step.key) if isinstance(step, Attribute) else Attribute(str(step.key))
    if other in steps and isinstance(step.key, str):
        return other
    index = step.key
    if isinstance(step, Item) and isinstance(index, int) and -len(steps) <= index < len(steps):
        by_position = isinstance(value, list | tuple) or dataclasses.is_dataclass(value)
        if by_position:
            return steps[index]
    inside = ", ".join(str(each) for each in steps) or f"nothing: it is a {type(value).__name__}"
    raise LookupError(f"{step} is not in the value, which holds {inside}")
