"""Objects that are no containers (caches, distributions, classes of the user's), as they were.

Tensors lie in their attributes, where the program goes on changing them: a cache of transformers
binds longer tensors to its layers at each token. So a value that is kept gets a copy of the object,
made attribute by attribute, with each tensor kept as any other. No code of the class is run for
it: no constructor, no property, no `__copy__`. A type that is registered with torch's pytree is
taken apart and put together by the functions that were registered.

What cannot be copied so (modules, generators, objects of extensions, objects with a finaliser) is
not kept at all: a `NotRecorded` stands in its place and says so. Nothing is kept by reference.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import functools
import math
import pathlib
import re
import types
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
import torch
from torch import nn

from nethook.addresses.nested import map_tensors
from nethook.torch_private import pytree

MOST = 10_000
"""Attributes and elements that are looked at in one object; a larger one is not recorded.

A copy of so many takes a few tens of milliseconds. Past that, an object that merely passes by (a
tokenizer with its vocabulary, a data set) would slow the forward that is observed.
"""

DEEPEST = 50
"""How far objects may lie inside each other: each level takes several frames of Python's stack."""

_Tensor = torch.Tensor
_Map = Callable[[Any], Any]


class NotRecorded:
    """Stands in a recorded value for an object that could not be kept as it was.

    `kind` is the type of the object, `why` the reason in words.
    """

    __slots__ = ("kind", "why")

    def __init__(self, kind: type, why: str) -> None:
        self.kind = kind
        self.why = why

    def __getattr__(self, name: str) -> NoReturn:
        if name in self.__slots__ or name.startswith("__"):  # asked while it is unpickled
            raise AttributeError(name)
        raise AttributeError(f"there is no .{name} to read here: {self!r}")

    def __repr__(self) -> str:
        return f"<not recorded: {self.kind.__qualname__}, {self.why}>"


_LIVE = "read it while the model runs: nethook.Callbacks(model).after(address)"
_MODULE = "a module; trace it by its own address"
_GENERATOR = f"which can be run only once; {_LIVE}"
_OPAQUE = f"which cannot be copied; {_LIVE}"
_FINALISER = f"whose copy would be finalised as well; {_LIVE}"
_LARGE = f"with more than {MOST:,} parts; {_LIVE}"
_DEEP = f"with objects nested deeper than {DEEPEST}; {_LIVE}"
_TRANSFORMED = "which transform= does not reach; trace without it to record the object"

# Nothing in them can change, and they hold no tensor.
_PLAIN = frozenset(
    {type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented)}
    | {torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.Generator}
)
_VALUES: tuple[type, ...] = (
    *(int, float, complex, str, bytes, type, enum.Enum, types.ModuleType, types.CodeType),
    *(dt.date, dt.time, dt.timedelta, dt.tzinfo, decimal.Decimal),
    *(fractions.Fraction, uuid.UUID, pathlib.PurePath, re.Pattern, np.generic, np.dtype),
    *(torch.finfo, torch.iinfo, torch.SymInt, torch.SymFloat, torch.SymBool),
    *(weakref.ReferenceType, weakref.ProxyType, NotRecorded),
)
_RUNNING = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_SLOT = types.MemberDescriptorType


class Copy:
    """One value being copied; each object in it once, so that shared and circular ones stay so.

    Arguments:
        keep: what becomes of each tensor.
        read: by type, what becomes of stand-ins that an earlier copy put in the place of tensors.
    """

    def __init__(self, keep: _Map, read: dict[type, _Map] | None = None) -> None:
        self._keep_tensor = keep
        self._read = {} if read is None else read
        self._made: dict[int, tuple[Any, Any]] = {}  # id -> the object, held, and its copy
        self._left: float = math.inf  # how many parts may still be looked at
        self._depth = 0
        self.is_whole = True  # whether it holds no stand-ins, and can be given to anybody

    def of(self, value: Any) -> Any:
        """The copy of an object that is no container; the value itself where none is needed."""
        if is_plain(value):
            return value
        self._left = MOST
        try:
            return self.inside(value)
        except _NotRecordedError as error:
            why = str(error)
        except Exception:  # an odd class: whatever it is, the forward goes on
            why = _OPAQUE
        self._made.clear()  # some of them are half filled
        return NotRecorded(type(value), why)

    def _map(self, value: Any) -> Any:
        return map_tensors(self._kept, value, self.inside, fresh=True, attributes="map")

    def _kept(self, tensor: torch.Tensor) -> Any:
        earlier = self._made.get(id(tensor))
        if earlier is not None:
            return earlier[1]
        self._count()
        kept = self._keep_tensor(tensor)
        if not isinstance(kept, _Tensor):
            self.is_whole = False
        self._made[id(tensor)] = (tensor, kept)
        return kept

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _NotRecordedError(_LARGE)

    def inside(self, value: Any) -> Any:
        """The copy of an object that is no container, inside another or by itself."""
        self._count()
        kind = type(value)
        if kind in self._read:
            return self._read[kind](value)
        if is_plain(value):
            return value
        earlier = self._made.get(id(value))
        if earlier is not None:
            return earlier[1]
        if self._depth >= DEEPEST:
            raise _NotRecordedError(_DEEP)
        self._depth += 1
        try:
            copy = self._copied(value, kind)
        finally:
            self._depth -= 1
        self._made[id(value)] = (value, copy)
        return copy

    def _copied(self, value: Any, kind: type) -> Any:
        if issubclass(kind, nn.Module):
            return NotRecorded(kind, _MODULE)
        if kind is _Registered:
            return value.joined(self._map)
        if kind in pytree.SUPPORTED_NODES:
            taken_apart = self._registered(value, kind)
            if taken_apart is not None:
                return taken_apart
        if kind in _OTHERS:
            return _OTHERS[kind](value, self._map)
        if kind in _CALLABLES and _is_inert(value, set()):
            return value
        if issubclass(kind, _RUNNING):
            return NotRecorded(kind, _GENERATOR)
        if hasattr(kind, "__del__"):
            return NotRecorded(kind, _FINALISER)
        try:
            copy = _base(kind).__new__(kind)
        except TypeError:  # an object of an extension: what it holds is out of reach
            return NotRecorded(kind, _OPAQUE)
        held, slots = _attributes(value, kind), list(_slots(kind))
        if held is None and not slots:
            return value  # a mere mark, such as `object()`
        self._made[id(value)] = (value, copy)  # before it is filled: it may hold itself
        self._fill(copy, value, held, slots)
        return copy

    def _fill(self, copy: Any, value: Any, held: dict[str, Any] | None, slots: list[Any]) -> None:
        attributes = _attributes(copy, type(copy))
        for name, member in list((held or {}).items()):
            assert attributes is not None
            attributes[name] = self._map(member)
        for slot in slots:
            try:
                member = slot.__get__(value)
            except AttributeError:  # not set
                continue
            slot.__set__(copy, self._map(member))

    def _registered(self, value: Any, kind: type) -> _Registered | None:
        """What a registered type holds; None where it will not be taken apart."""
        node = pytree.SUPPORTED_NODES[kind]
        try:
            children, context = node.flatten_fn(value)
        except Exception:
            return None
        self.is_whole = False
        return _Registered(node.unflatten_fn, self._map(list(children)), self._map(context))


class _Registered:
    """A registered object, taken apart. It is put together when it is read."""

    __slots__ = ("_children", "_context", "_join")

    def __init__(self, join: Callable[..., Any], children: list[Any], context: Any) -> None:
        self._join = join
        self._children = children
        self._context = context

    def joined(self, mapped: _Map) -> Any:
        return self._join(mapped(self._children), mapped(self._context))


class Held:
    """A copy in which stand-ins for tensors have to be replaced before it is given to anybody."""

    __slots__ = ("_copy",)

    def __init__(self, copy: Any) -> None:
        self._copy = copy

    def read(self, read: dict[type, _Map]) -> Any:
        """The object that was copied."""
        return Copy(_same, read).inside(self._copy)


class _NotRecordedError(Exception):
    pass


def copier(keep: _Map) -> _Map:
    """The function that copies the objects of one value; a `Held` has to be read."""
    copy: Copy | None = None

    def copied(value: Any) -> Any:
        nonlocal copy
        if type(value) in _PLAIN:
            return value  # nearly always
        copy = Copy(keep) if copy is None else copy
        made = copy.of(value)
        if copy.is_whole or made is value or type(made) is NotRecorded:
            return made
        return Held(made)

    return copied


def is_plain(value: Any) -> bool:
    """Whether nothing in a value can change, and no tensor is in it: a number, a text, a type."""
    kind = type(value)
    return kind in _PLAIN or issubclass(kind, _VALUES)


def refuse(tensor: torch.Tensor) -> NoReturn:  # noqa: ARG001
    """In the place of `keep`: objects that hold a tensor are not recorded."""
    raise _NotRecordedError(_TRANSFORMED)


def _same(value: Any) -> Any:
    return value


def _base(kind: type) -> Any:
    return types.SimpleNamespace if issubclass(kind, types.SimpleNamespace) else object


def _attributes(value: Any, kind: type) -> dict[str, Any] | None:
    """The `__dict__` of an object, whatever its class makes of that name."""
    for base in kind.__mro__:
        descriptor = base.__dict__.get("__dict__")
        if isinstance(descriptor, types.GetSetDescriptorType):
            attributes: dict[str, Any] = descriptor.__get__(value)
            return attributes
    return value.__dict__ if issubclass(kind, types.SimpleNamespace) else None


def _slots(kind: type) -> Iterator[Any]:
    for base in kind.__mro__:
        for name, descriptor in base.__dict__.items():
            if isinstance(descriptor, _SLOT) and name != "__dict__":
                yield descriptor


def _array(value: Any, mapped: _Map) -> Any:
    if not value.dtype.hasobject:
        return value.copy()
    copy = np.empty_like(value)
    copy.reshape(-1)[:] = [mapped(element) for element in value.reshape(-1)]
    return copy


# Small types of the standard library and numpy that are copied by a call.
_OTHERS: dict[type, Callable[[Any, _Map], Any]] = {
    set: lambda value, mapped: {mapped(element) for element in value},
    frozenset: lambda value, mapped: frozenset(mapped(element) for element in value),
    deque: lambda value, mapped: deque([mapped(element) for element in value], value.maxlen),
    slice: lambda value, mapped: slice(*map(mapped, (value.start, value.stop, value.step))),
    bytearray: lambda value, _: bytearray(value),
    np.ndarray: _array,
}


def _cells(function: types.FunctionType) -> Iterator[Any]:
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # empty still
            continue


# What functions of each kind hold.
_CALLABLES: dict[type, Callable[[Any], Iterator[Any]]] = {
    types.FunctionType: _cells,
    types.MethodType: lambda method: iter((method.__self__, method.__func__)),
    types.BuiltinFunctionType: lambda function: iter((function.__self__,)),
    functools.partial: lambda bound: iter((bound.func, *bound.args, *bound.keywords.values())),
    types.MethodDescriptorType: lambda _: iter(()),
    types.WrapperDescriptorType: lambda _: iter(()),
}


def _is_inert(function: Any, seen: set[int]) -> bool:
    """Whether a function holds nothing that could change: no tensor, no object."""
    if id(function) in seen or len(seen) > DEEPEST:
        return len(seen) <= DEEPEST
    seen.add(id(function))
    return all(
        is_plain(member) or (type(member) in _CALLABLES and _is_inert(member, seen))
        for member in _CALLABLES[type(function)](function)
    )
