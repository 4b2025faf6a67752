"""Tensors inside nested values: found, replaced, and the value rebuilt with its type intact.

Tuples, named tuples, lists, dicts, dataclasses and `ModelOutput`s are opened; everything else
(None, numbers, strings, caches, objects of the user's) is left as it is. Each tensor has a path
from the value that holds it: `[0]`, `["logits"]`, `.logits`; the path of a bare tensor is empty.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, UserDict
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast

import torch

from nethook.addresses.paths import Attribute, Item, Path
from nethook.errors import NoSuchSiteError

_NO_PATH: Path = ()
_WITHOUT_ATTRIBUTES = frozenset({tuple, list, dict})
_DATACLASS = "__dataclass_fields__"  # what `dataclasses.is_dataclass` looks at


def tensors(value: object) -> list[tuple[Path, torch.Tensor]]:
    """Every tensor in `value` with its path, in order."""
    if isinstance(value, torch.Tensor):
        return [(_NO_PATH, value)]
    pairs: list[tuple[Path, torch.Tensor]] = []
    _collect(value, _NO_PATH, pairs, set())
    return pairs


def _collect(
    value: object, path: Path, pairs: list[tuple[Path, torch.Tensor]], above: set[int]
) -> None:
    if isinstance(value, torch.Tensor):
        pairs.append((path, value))
        return
    children = _children(value)
    if children is None or id(value) in above:  # a list may hold itself
        return
    above.add(id(value))
    for step, child in children:
        _collect(child, (*path, step), pairs, above)
    above.discard(id(value))


def map_tensors(
    function: Callable[[torch.Tensor], Any],
    value: Any,
    other: Callable[[Any], Any] | None = None,
    *,
    fresh: bool = False,
    attributes: Attributes = "share",
) -> Any:
    """`value` with each tensor replaced by `function(tensor)`, in order.

    Containers keep their type, and a container in which nothing was replaced is returned itself;
    only one that holds itself is always made anew. With `fresh`, so is every container that
    somebody could change later. `other` is applied to what is neither a tensor nor a container.
    `attributes` says what becomes of those that a container has besides its items (a list of a
    class of the user's may have some): the new one shares them, or they are mapped like items, or
    they are None.
    """
    if isinstance(value, torch.Tensor):
        return function(value)
    return _map(value, _How(function, other, fresh, attributes), {})


Attributes = Literal["share", "map", "drop"]


class _How(NamedTuple):
    """What is done with the parts of a value."""

    function: Callable[[torch.Tensor], Any]
    other: Callable[[Any], Any] | None
    fresh: bool
    attributes: Attributes


def _map(value: Any, how: _How, above: dict[int, Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return how.function(value)
    children = _children(value)
    if children is None:
        return value if how.other is None else how.other(value)
    key = id(value)
    if key in above:
        # A container that holds itself: what it becomes is made before it is filled.
        if above[key] is None and not isinstance(value, tuple | MappingProxyType):
            above[key] = _twin(value)
        return value if above[key] is None else above[key]
    above[key] = None
    old = list(children)
    new = [_map(child, how, above) for _, child in old]
    changed: dict[str, Any] = {}
    if how.attributes != "share" and type(value) not in _WITHOUT_ATTRIBUTES:
        for name, held in _own_attributes(value, old):
            now = _map(held, how, above) if how.attributes == "map" else None
            if now is not held:
                changed[name] = now
    twin = above.pop(key)
    same = twin is None and all(was is now for (_, was), now in zip(old, new, strict=True))
    cannot_change = isinstance(value, tuple | MappingProxyType)
    if same and not changed and (cannot_change or not how.fresh):
        return value
    made = _rebuild(value, old, new, twin)
    if changed:
        vars(made).update(changed)
    return made


def _own_attributes(value: Any, items: list[tuple[Attribute | Item, Any]]) -> list[tuple[str, Any]]:
    """What a container holds besides its items: attributes of a subclass."""
    own = getattr(value, "__dict__", None)
    if not own or type(own) is not dict:  # the attributes of some dicts are the dict itself
        return []
    named = {step.key for step, _ in items if isinstance(step, Attribute)}
    if isinstance(value, MutableMapping) and not isinstance(value, dict):
        # A mapping of the user's keeps its items in an attribute.
        named |= {name for name, held in own.items() if isinstance(held, list | MutableMapping)}
    return [(name, held) for name, held in own.items() if name not in named]


def _children(value: object) -> Iterator[tuple[Attribute | Item, Any]] | None:
    """What lies directly inside a container; None for what is no container."""
    if isinstance(value, tuple):
        if isinstance(value, torch.Size):
            return None  # it holds numbers, and can hold nothing else
        fields = getattr(type(value), "_fields", None)
        if fields is not None:
            return ((Attribute(name), child) for name, child in zip(fields, value, strict=True))
        return ((Item(index), child) for index, child in enumerate(value))
    if isinstance(value, list):
        return ((Item(index), child) for index, child in enumerate(value))
    if isinstance(value, MutableMapping | MappingProxyType):  # others could not be rebuilt
        # A ModelOutput is a dataclass as well, and read by attribute. The class is asked: a dict
        # that turns attributes into keys would make a key of the question.
        named = getattr(type(value), _DATACLASS, ())
        return (
            (Attribute(key) if key in named else Item(key), child) for key, child in _items(value)
        )
    if hasattr(type(value), _DATACLASS):
        return (
            (Attribute(field.name), getattr(value, field.name))
            for field in dataclasses.fields(cast(Any, value))
            # A property is code of the user's; a field may be left unset (init=False).
            if not isinstance(getattr(type(value), field.name, None), property)
            and hasattr(value, field.name)
        )
    return None


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    """What a mapping holds. Of a dict it is read past its class, whose code may do anything."""
    if isinstance(value, OrderedDict):
        return OrderedDict.items(value)
    if isinstance(value, dict):
        return dict.items(value)
    return ((key, value[key]) for key in value)


def _rebuild(
    value: Any, old: list[tuple[Attribute | Item, Any]], new: list[Any], twin: Any = None
) -> Any:
    """A container like `value` (or its twin, if there is one), holding `new` instead of `old`."""
    if isinstance(value, tuple):
        return _rebuild_tuple(value, new)
    if isinstance(value, MappingProxyType):
        return MappingProxyType({step.key: now for (step, _), now in zip(old, new, strict=True)})
    twin = _twin(value) if twin is None else twin
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


def _twin(value: Any) -> Any:
    """A copy that shares nothing with `value` but what lies inside."""
    if hasattr(type(value), _DATACLASS) and not isinstance(value, list):
        twin = _twin_of_dataclass(value)
    else:
        # A shallow copy keeps what a constructor would lose: default factories, attributes.
        twin = copy.copy(value)
    if getattr(value, "__dict__", None) is value:  # a dict whose keys are its attributes
        twin.__dict__ = twin
    elif isinstance(value, MutableMapping) and not isinstance(value, dict | UserDict):
        # A mapping of the user's keeps its items in an attribute, which the two would share.
        for name, held in list(getattr(twin, "__dict__", {}).items()):
            if isinstance(held, list | MutableMapping):
                twin.__dict__[name] = copy.copy(held)
    return twin


def _twin_of_dataclass(value: Any) -> Any:
    # Past the constructor and past what `copy` would call: that of a ModelOutput orders its keys
    # anew, and that of a frozen dataclass with slots insists on fields that were left unset.
    builtin = OrderedDict if isinstance(value, OrderedDict) else dict
    twin = builtin.__new__(type(value)) if isinstance(value, dict) else object.__new__(type(value))
    if isinstance(value, dict):
        for key, child in value.items():
            builtin.__setitem__(twin, key, child)
    state = object.__getstate__(value)
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        vars(twin).update(attributes)
    for name, held in (slots or {}).items():
        object.__setattr__(twin, name, held)
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
    step = _same_step(path[0], [other for other, _ in old], value)
    now = [replace(child, path[1:], new) if other == step else child for other, child in old]
    return _rebuild(value, old, now)


def get(value: Any, path: Path) -> Any:
    """What lies at `path` inside `value`. Both spellings of a field are accepted."""
    return _follow(value, path)[1]


def canonical(value: Any, path: Path) -> Path:
    """`path` in the spelling in which `tensors` gives it."""
    return _follow(value, path)[0]


def _follow(value: Any, path: Path) -> tuple[Path, Any]:
    steps: Path = ()
    for step in path:
        children = _children(value)
        inside = {} if children is None else dict(children)
        same = _same_step(step, list(inside), value)
        steps, value = (*steps, same), inside[same]
    return steps, value


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
        by_position = isinstance(value, list | tuple) or hasattr(type(value), _DATACLASS)
        if by_position:
            return steps[index]
    kind = type(value).__name__
    if not (steps or value is None or isinstance(value, torch.Tensor)) and _children(value) is None:
        raise NoSuchSiteError(
            f"{step} has no address: paths lead into tuples, lists, dicts and dataclasses, and not "
            f"into a {kind}. Take the whole object, and read or change it in a function."
        )
    inside = ", ".join(str(present) for present in steps) or f"nothing: it is a {kind}"
    raise NoSuchSiteError(f"{step} is not in the value, which holds {inside}.")
