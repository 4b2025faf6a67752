"""Bit-exact comparison of anything a model may return or hold.

`snapshot(value)` walks a value and writes down every fact about it as plain data, one entry a path;
two values are the same exactly when their snapshots are equal, and `differences(a, b)` says where
they are not. Bits are compared, not numbers: NaN equals NaN of the same payload, 0.0 differs
from -0.0.
"""

from __future__ import annotations

import dataclasses
import types
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedTensorMixin
from torch.utils.hooks import RemovableHandle

__all__ = ["Snapshot", "TensorFacts", "differences", "raw_bits", "snapshot"]

Snapshot: TypeAlias = dict[str, object]


@dataclasses.dataclass(frozen=True)
class TensorFacts:
    """What is compared of a tensor. The second half is left empty when only values are compared."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    bits: object
    # How the tensor is stored and where it stands in the graph: an observer changes none of it.
    stride: object = None
    offset: object = None
    flags: tuple[str, ...] = ()
    version: int | None = None
    node: str | None = None
    hooks: tuple[str, ...] = ()
    storage: int | None = (
        None  # number of the storage in order of first appearance: equal numbers share memory
    )


def raw_bits(tensor: Tensor) -> object:
    """The bits of a tensor's values in logical order, whatever its layout."""
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        plain = tensor.detach()
        if type(plain) is not Tensor:
            plain = plain.as_subclass(Tensor)
        if plain.is_nested:
            return tuple((tuple(part.shape), raw_bits(part)) for part in plain.unbind())
        if plain.layout is torch.sparse_coo:
            return (plain.is_coalesced(), raw_bits(plain._indices()), raw_bits(plain._values()))
        if plain.layout is torch.sparse_csr:
            return (
                raw_bits(plain.crow_indices()),
                raw_bits(plain.col_indices()),
                raw_bits(plain.values()),
            )
        if plain.is_meta:
            return "no memory"
        if plain.is_quantized:
            return (plain.q_scale(), plain.q_zero_point(), raw_bits(plain.int_repr()))
        # A clone: handing the memory itself to numpy would end a copy-on-write under observation.
        plain = plain.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
        return plain.reshape(-1).view(torch.uint8).numpy().tobytes()


def snapshot(value: object, *, values_only: bool = False) -> Snapshot:
    """Every fact about a value, by path.

    `values_only` leaves out what a copy does not have: strides, the graph, who shares memory with
    whom, and what is inside of objects that are no containers.
    """
    recorder = _Recorder(values_only)
    recorder.add("", value)
    return recorder.facts


def differences(left: Mapping[str, object], right: Mapping[str, object]) -> list[str]:
    """Where two snapshots differ, one line each; empty when nothing does."""
    lines = []
    for path in dict.fromkeys([*left, *right]):
        a, b = left.get(path, "<absent>"), right.get(path, "<absent>")
        if a == b:
            continue
        if isinstance(a, TensorFacts) and isinstance(b, TensorFacts):
            for field in dataclasses.fields(TensorFacts):
                x, y = getattr(a, field.name), getattr(b, field.name)
                if x != y:
                    lines.append(f"{path}: {field.name}: {_short(x)} != {_short(y)}")
        else:
            lines.append(f"{path}: {_short(a)} != {_short(b)}")
    return lines


def _short(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else repr(value)
    return text if len(text) <= 160 else f"{text[:150]}… ({len(text)} characters)"


_GRAD = ".grad"

# Tables in which torch notes, by the hook's id, how a hook is to be called.
_HOOK_FLAGS = (
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs",
)


def _hook_table(module: nn.Module, name: str, hooks: Mapping[int, object]) -> tuple[str, ...]:
    """The hooks of one table, by name and order: their ids differ from run to run."""
    flags = [flag for flag in _HOOK_FLAGS if flag.startswith(name)]
    entries = []
    for key, hook in hooks.items():
        set_ = [flag for flag in flags if key in vars(module)[flag]]
        entries.append(" ".join([_callable_name(hook), *set_]))
    stale = [flag for flag in flags for key in vars(module)[flag] if key not in hooks]
    return (*entries, *(f"{flag} without its hook" for flag in stale))


def _is_function(value: object) -> bool:
    if isinstance(value, types.FunctionType | types.MethodType | partial | type):
        return True
    return callable(value) and not hasattr(value, "__dict__")


def _callable_name(function: object) -> str:
    if isinstance(function, partial):
        return f"partial({_callable_name(function.func)})"
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{module}.{name}"


class _Recorder:
    def __init__(self, values_only: bool) -> None:
        self.facts: Snapshot = {}
        self._values_only = values_only
        self._seen: dict[
            int, tuple[str, object]
        ] = {}  # the object is kept so that its id stays its own
        self._storages: dict[int, int] = {}

    def add(self, path: str, value: object) -> None:
        if _is_atom(value):
            self.facts[path] = _atom(value)
            return
        shared = not (self._values_only and isinstance(value, Tensor))
        if shared and id(value) in self._seen:  # also circular structures: the identity is the fact
            self.facts[f"{path}: is"] = self._seen[id(value)][0]
            return
        self._seen[id(value)] = (path or "<root>", value)
        if isinstance(value, Tensor):
            self._tensor(path, value)
        elif isinstance(value, np.ndarray):
            self.facts[path] = (
                str(value.dtype),
                value.shape,
                value.strides,
                value.flags.writeable,
                value.tobytes(),
            )
        elif isinstance(value, nn.Module):
            self._module(path, value)
        elif isinstance(value, RemovableHandle):
            self.facts[path] = "a handle"  # the number in it counts on through the whole process
        elif isinstance(value, weakref.ReferenceType):
            self.facts[path] = f"weak reference, {'dead' if value() is None else 'alive'}"
        elif _is_function(value):
            self.facts[path] = _callable_name(value)
        else:
            self.facts[path] = f"{type(value).__module__}.{type(value).__qualname__}"
            if self._values_only and not _is_container(value):
                return  # an object of somebody's own, and not part of the value
            for step, part in _parts(value):
                self.add(f"{path}{step}", part)

    def _module(self, path: str, module: nn.Module) -> None:
        self.facts[path] = f"{type(module).__module__}.{type(module).__qualname__}"
        self.facts[f"{path}: attributes"] = tuple(sorted(vars(module)))
        for name, value in vars(module).items():
            if name in _HOOK_FLAGS:
                continue  # written down with the hooks they belong to
            if "_hooks" in name and isinstance(value, Mapping):
                self.facts[f"{path}.{name}"] = _hook_table(module, name, value)
            else:
                self.add(f"{path}.{name}", value)

    def _tensor(self, path: str, tensor: Tensor) -> None:
        if isinstance(tensor, UninitializedTensorMixin):
            self.facts[path] = type(tensor).__name__
            return
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            self.facts[path] = "a wrapper of torch.func, dead outside of it"
            return
        # A copy of a parameter is a plain tensor; as a value it is the same.
        plain = self._values_only and isinstance(tensor, nn.Parameter)
        name = "Tensor" if plain else type(tensor).__qualname__
        kind = f"{name} {tensor.layout} {tensor.device}"
        shape = () if tensor.is_nested else tuple(tensor.shape)
        facts = TensorFacts(kind, str(tensor.dtype), shape, raw_bits(tensor))
        if not self._values_only:
            facts = self._place(path, tensor, facts)
        self.facts[path] = facts
        if not self._values_only and (tensor.is_leaf or tensor.retains_grad):
            self.add(f"{path}{_GRAD}", tensor.grad)
        if type(tensor) is not Tensor and vars(tensor) and not self._values_only:
            self.add(f"{path}.__dict__", vars(tensor))

    def _place(self, path: str, tensor: Tensor, facts: TensorFacts) -> TensorFacts:
        strided = tensor.layout is torch.strided and not tensor.is_nested
        flags = {
            "requires_grad": tensor.requires_grad,
            "leaf": tensor.is_leaf,
            "view": tensor._is_view(),
            "inference": tensor.is_inference(),
            "conj": tensor.is_conj(),
            "neg": tensor.is_neg(),
            "shared": strided and not tensor.is_meta and tensor.is_shared(),
            "retains_grad": tensor.retains_grad,
        }
        hooks: list[str] = []
        if (
            tensor.is_leaf
        ):  # hooks on what lives in the graph die with it; on a leaf they would stay for ever
            for table in (
                tensor._backward_hooks,
                getattr(tensor, "_post_accumulate_grad_hooks", None),
            ):
                hooks += [_callable_name(hook) for hook in (table or {}).values()]
        storage = None
        if (
            strided
            and not tensor.is_meta
            and type(tensor).__torch_dispatch__ is Tensor.__torch_dispatch__
        ):
            # The storage object's address, not the memory's: reading that ends a copy-on-write.
            storage = self._storages.setdefault(
                tensor.untyped_storage()._cdata, len(self._storages)
            )
        # The engine adds up gradients in place, unless somebody holds one of them, as whoever keeps
        # a gradient by reference does. The sum is the same; how often it was written is not.
        version = None if tensor.is_inference() or path.endswith(_GRAD) else tensor._version
        return dataclasses.replace(
            facts,
            stride=tensor.stride() if strided else None,
            offset=tensor.storage_offset() if strided else None,
            flags=tuple(name for name, on in flags.items() if on),
            version=version,
            node=None if tensor.grad_fn is None else tensor.grad_fn.name(),
            hooks=tuple(hooks),
            storage=storage,
        )


def _is_atom(value: object) -> bool:
    return value is None or isinstance(
        value,
        bool
        | int
        | float
        | complex
        | str
        | bytes
        | slice
        | range
        | torch.dtype
        | torch.device
        | torch.layout,
    )


def _is_container(value: object) -> bool:
    return isinstance(value, Mapping | Sequence | set | frozenset) or dataclasses.is_dataclass(
        value
    )


def _atom(value: object) -> object:
    if isinstance(value, float):
        return (type(value).__qualname__, value.hex())
    if isinstance(value, complex):
        return (type(value).__qualname__, value.real.hex(), value.imag.hex())
    return (type(value).__qualname__, repr(value))


def _parts(value: Any) -> Iterator[tuple[str, object]]:
    """The parts of a container, or the attributes of an object, with the step that leads there."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield f"[{key!r}]", part
        if type(value) in (dict, OrderedDict):
            return
    elif isinstance(value, Sequence):
        for index, part in enumerate(value):
            yield f"[{index}]", part
    elif isinstance(value, set | frozenset):
        yield " (sorted)", sorted(map(repr, value))
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield f".{field.name}", getattr(value, field.name, "<unset>")
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(
        value, types.ModuleType
    ):
        for name, part in vars(value).items():
            yield f".{name}", part
