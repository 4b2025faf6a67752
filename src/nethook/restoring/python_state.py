"""What Python holds: attributes of modules, and lists, dicts and generators in them.

Attributes are bound again to what they were bound to. Of what they hold, the containers of Python,
arrays and generators are filled again; objects of other classes are not opened, for nobody could
say where they end, unless they were given as an input.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Iterable
from operator import is_
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import nn

from nethook.hooks.process.added_in_forward import HooksOfModule
from nethook.restoring.randomness import save_generator
from nethook.restoring.tensors import SavedTensors, has_own_memory
from nethook.restoring.undo import Undo
from nethook.torch_private import (
    COMPILED_CALL,
    HOLD_PARTS,
    NOT_SAVED,
    buffers_of,
    children_of,
    parameters_of,
)

MOST_ITEMS = 10_000
"""A container of more items is left alone: a table of words, a data set."""
MOST_BYTES = 2**20
"""An array of more bytes, too."""
_ATOMS = frozenset(
    {type(None), bool, int, float, complex, str, bytes, range, torch.Size, torch.dtype,
     torch.device, FunctionType, MethodType, ModuleType, type}
)  # fmt: skip
_MISSING = object()
_NOTHING: dict[Any, Any] = {}
# Tables of hooks, for the most part, which are the matter of `hooks`.
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
_LEFT_TO_TORCH = _OF_EVERY_MODULE - {
    *HOLD_PARTS, NOT_SAVED, "training",
} | {COMPILED_CALL}  # fmt: skip
# Where wrappers such as DDP and FSDP are defined. Of them only the mode and the parts are put back.
_WRAPPERS = ("torch.distributed.", "torch.nn.parallel.")


def every_module(model: nn.Module) -> list[nn.Module]:
    """Every module once, by identity: `model.modules()` leaves out one that is equal to another."""
    modules: dict[int, nn.Module] = {}
    queue: list[nn.Module | None] = [model]
    for module in queue:
        if module is not None and id(module) not in modules:
            modules[id(module)] = module
            queue.extend(children_of(module).values())
    return list(modules.values())


class SavedState:
    """Modules and values as they are now, with all tensors that they hold."""

    def __init__(self, *, parameters: bool = True) -> None:
        self._tensors = SavedTensors(parameters=parameters)
        self._undo: list[Undo] = []
        self._seen: dict[int, Any] = {}  # by id; what is here lives on, so that its id is its own
        self._queue: list[Any] = []

    def add_model(self, model: nn.Module) -> None:
        """A module with all that it holds."""
        modules = every_module(model)
        for module in modules:
            for name, parameter in parameters_of(module).items():
                if parameter is not None:
                    self._tensors.add_parameter(parameter, f"{type(module).__name__}.{name}")
        for module in modules:
            self._module(module)
        self._open(objects=False)

    def add_value(self, value: object) -> None:
        """Inputs: tensors and containers as above, and also the attributes of objects."""
        self._queue.append(value)
        self._open(objects=True)

    def put_back(self) -> None:
        """Everything as it was when it was added."""
        for undo in self._undo:
            undo()
        self._tensors.put_back()

    def _module(self, module: nn.Module) -> None:
        if id(module) in self._seen:
            return
        self._seen[id(module)] = module
        own = vars(module)
        if "training" not in own or type(module).__module__.startswith(_WRAPPERS):
            self._undo.append(_Mode(module).put_back)
        if isinstance(module, torch.jit.ScriptModule):  # what it holds is not Python's
            self._queue.extend(module.buffers(recurse=False))
            return
        self._undo.append(_Parts(own).put_back)
        if buffers_of(module):
            self._queue.extend(buffers_of(module).values())
        if type(module).__module__.startswith(_WRAPPERS):
            return  # their attributes belong to objects that cannot be put back
        self._undo.append(_Attributes(module, _LEFT_TO_TORCH).put_back)
        self._undo.append(HooksOfModule(module).put_back)
        self._undo.append(_Items(own[NOT_SAVED]).put_back)
        for name, value in own.items():
            if name not in _OF_EVERY_MODULE and type(value) not in _ATOMS:
                self._queue.append(value)

    def _open(self, *, objects: bool) -> None:
        queue, seen = self._queue, self._seen
        while queue:
            value = queue.pop()
            if isinstance(value, torch.Tensor):
                self._tensors.add(value)
            elif type(value) not in _ATOMS and id(value) not in seen:
                if isinstance(value, nn.Module):  # in a list, where torch does not see it
                    self.add_model(value)
                    continue
                seen[id(value)] = value
                queue.extend(self._parts(value, objects=objects))

    def _parts(self, value: Any, *, objects: bool) -> Iterable[Any]:
        """Saves one value; what is in it is next."""
        if isinstance(value, list | dict | set | deque | tuple):
            if len(value) > MOST_ITEMS:
                return ()
            return self._container(value, objects=objects)
        generator = save_generator(value)
        if generator is not None:
            self._undo.append(generator)
            return ()
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray):
            self._undo.append(_Array(value, numpy).put_back)
            return ()
        return self._attributes(value) if objects or _is_plain_data(value) else ()

    def _container(self, value: Any, *, objects: bool) -> Iterable[Any]:
        parts: list[Any] = []
        if isinstance(value, dict):
            self._undo.append(_Mapping(value, _kind_of(value)).put_back)
            parts.extend(dict.values(value))
        else:
            if not isinstance(value, tuple):
                self._undo.append(_Items(value).put_back)
            parts.extend(value)
        if objects and hasattr(value, "__dict__"):
            parts.extend(self._attributes(value))
        return parts

    def _attributes(self, value: Any) -> Iterable[Any]:
        own = getattr(value, "__dict__", None)
        if type(own) is not dict:  # slots, or none at all
            return ()
        self._undo.append(_Attributes(value).put_back)
        return list(own.values())


def _is_plain_data(value: Any) -> bool:
    return type(value) is SimpleNamespace or hasattr(type(value), "__dataclass_fields__")


def _kind_of(value: dict[Any, Any]) -> Any:
    # The methods of the builtin class: those of a subclass may do more, or refuse.
    return OrderedDict if isinstance(value, OrderedDict) else dict


class _Mode:
    """Whether a module is in training."""

    __slots__ = ("_module", "_training")

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._training = module.training

    def put_back(self) -> None:
        if self._module.training is not self._training:
            self._module.training = self._training


class _Attributes:
    """The attributes of an object, and its class."""

    __slots__ = ("_before", "_class", "_left_alone", "_object")

    def __init__(self, value: Any, left_alone: frozenset[str] = frozenset()) -> None:
        self._object = value
        self._class = type(value)
        self._before = dict(vars(value))
        self._left_alone = left_alone

    def put_back(self) -> None:
        now, before, left_alone = vars(self._object), self._before, self._left_alone
        if type(self._object) is not self._class:
            self._object.__class__ = self._class
        if _is_same(now, before):
            return
        for name in [
            attribute
            for attribute in now
            if attribute not in before and attribute not in left_alone
        ]:
            del now[name]
        for name, value in before.items():
            if now.get(name, _MISSING) is not value and name not in left_alone:
                now[name] = value


class _Parts:
    """What a module holds by name: parameters, buffers and modules."""

    __slots__ = ("_before",)

    def __init__(self, own: dict[str, Any]) -> None:
        tables = map(own.__getitem__, HOLD_PARTS)
        self._before = [(table, dict(table) if table else _NOTHING) for table in tables]

    def put_back(self) -> None:
        for table, before in self._before:
            if table or before:  # most modules have parts of one kind, or none
                _fill_again(table, before, dict)


class _Mapping:
    """What a dict holds, in its order."""

    __slots__ = ("_before", "_kind", "_mapping")

    def __init__(self, mapping: Any, kind: Any) -> None:
        self._mapping = mapping
        self._kind = kind
        # A wrapper around those of a ScriptModule cannot be written to.
        self._before = dict(mapping) if isinstance(mapping, dict) else None

    def put_back(self) -> None:
        if self._before is not None:
            _fill_again(self._mapping, self._before, self._kind)


def _fill_again(mapping: Any, before: dict[Any, Any], kind: Any) -> None:
    """Gives a dict what it held, in its order."""
    if _is_same(mapping, before) or _is_spread(mapping, before):
        return
    kind.clear(mapping)
    for key, value in before.items():
        kind.__setitem__(mapping, key, value)


def _is_same(now: dict[Any, Any], before: dict[Any, Any]) -> bool:
    if not now or not before:
        return not now and not before
    if len(now) != len(before) or not all(map(is_, now, before)):
        return False
    return all(map(is_, dict.values(now), before.values()))


def _is_spread(now: dict[Any, Any], before: dict[Any, Any]) -> bool:
    """Whether weights that are spread over processes were gathered: only their owner knows."""
    return any(
        isinstance(value, torch.Tensor) and has_own_memory(value) and now.get(key) is not value
        for key, value in before.items()
    )


class _Items:
    """What a list, a set or a deque holds."""

    __slots__ = ("_before", "_holder")

    def __init__(self, holder: Any) -> None:
        self._holder = holder
        self._before = list(holder)

    def put_back(self) -> None:
        holder, before = self._holder, self._before
        as_long = len(holder) == len(before)
        if as_long and all(a is b for a, b in zip(holder, before, strict=True)):
            return
        if isinstance(holder, list):
            list.__setitem__(holder, slice(None), before)
        elif isinstance(holder, set):
            set.clear(holder)
            set.update(holder, before)
        else:
            deque.clear(holder)
            deque.extend(holder, before)


class _Array:
    """The numbers of a numpy array, unless it is a large one."""

    __slots__ = ("_array", "_before")

    def __init__(self, array: Any, numpy: Any) -> None:
        self._array = array
        small = array.nbytes <= MOST_BYTES and array.flags.writeable and not array.dtype.hasobject
        self._before = numpy.array(array) if small else None

    def put_back(self) -> None:
        array, before = self._array, self._before
        if before is None or array.shape != before.shape:
            return
        if array.tobytes() != before.tobytes():
            array[...] = before
