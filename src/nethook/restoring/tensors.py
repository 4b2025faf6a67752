"""Tensors that others hold: their values, memory, versions and gradients, and putting them back.

A copy costs no memory until one of the two is written (`hooks.autograd.lazy_copy`). Where memory is
shared with others a copy has to be a true one. Weights and gradients are copied so only up to
`MOST_COPIED` bytes in all, for a model may be as large as the memory; beyond that a write is
noticed and named.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from nethook.hooks.autograd.compact import stored
from nethook.hooks.autograd.lazy_copy import lazy_copy
from nethook.hooks.layouts.fake import is_fake
from nethook.hooks.process.added_in_forward import HooksOfTensor
from nethook.torch_private import (
    base_of,
    first_element,
    is_of_a_transform,
    is_view,
    set_versions,
    storage_id,
    version_of,
)

MOST_COPIED = 64 * 2**20
_OF_TORCH = frozenset((torch.Tensor, nn.Parameter, nn.Buffer))
# Integers as wide as an element: compared as such, NaN equals NaN and -0.0 is not 0.0.
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class SavedTensors:
    """Tensors as they are now. With `parameters=False` the values of weights are left out."""

    def __init__(self, *, parameters: bool = True) -> None:
        self._saved: dict[int, _Saved] = {}
        self._parameters = parameters
        self._written: set[int] = set()  # memory that is written on purpose
        self._left = MOST_COPIED
        self._hooks: list[HooksOfTensor] = []
        self._unmade: list[tuple[torch.Tensor, type, torch.Tensor, int]] = []

    def add_parameter(self, parameter: torch.Tensor, name: str) -> None:
        """A weight. All weights are added before anything else, which may share their memory."""
        self._hooks.append(HooksOfTensor(parameter))
        if not self._parameters and (memory := _memory(parameter)) is not None:
            self._written.add(memory)
        self.add(parameter, name)

    def add(self, tensor: torch.Tensor, weight: str = "") -> None:
        """Anything else, with its gradient."""
        if id(tensor) in self._saved or _has_no_values(tensor):
            return
        if isinstance(tensor, UninitializedTensorMixin):
            self._unmade.append((tensor, type(tensor), tensor.data, version_of(tensor)))
            return
        self._saved[id(tensor)] = saved = _Saved(tensor)
        if not (self._written and _memory(tensor) in self._written):
            self._copy(saved, weight)
        if tensor.requires_grad and tensor.is_leaf and tensor.grad is not None:
            saved.grad = tensor.grad
            self.add(tensor.grad, f"{weight or 'a tensor'}.grad")

    def _copy(self, saved: _Saved, weight: str) -> None:
        tensor = saved.tensor
        if weight and has_own_memory(tensor):
            return  # spread over processes, or packed: its own class takes care of its memory
        saved.value = lazy_copy(tensor, or_true=False) if saved.plain else None
        if saved.value is not None:
            saved.place = _place_of(tensor)
            return
        size = tensor.numel() * tensor.element_size()
        if weight and size > self._left:
            saved.only_watched = f"{weight} ({size / 2**20:,.0f} MB)"
        elif weight:
            self._left -= size
        if saved.plain:
            saved.memory = tensor.data
        if not saved.only_watched:
            held = tensor.detach() if saved.memory is None else stored(saved.memory)
            saved.value = held.clone()

    def put_back(self) -> None:
        """Everything as it was when it was added."""
        for hooks in self._hooks:
            hooks.put_back()
        for tensor, kind, nothing, version in self._unmade:
            if type(tensor) is not kind:  # a lazy module has made its parameters
                tensor.data = nothing
                tensor.__class__ = kind
                set_versions((tensor,), (version,))
        for saved in self._saved.values():
            saved.look()
        lost = [saved.only_watched for saved in self._saved.values() if not saved.put_back()]
        if lost:
            warnings.warn(
                f"the forward wrote to the memory of {', '.join(lost[:4])}"
                f"{' …' if len(lost) > 4 else ''}, and it stays written: others share that memory, "
                "and a copy of it would have been too large. Run a copy of the model instead: "
                "copy.deepcopy(model).",
                stacklevel=2,
            )


class _Saved:
    """One tensor as it was."""

    __slots__ = (
        "grad", "leaf", "memory", "only_watched", "place", "plain", "requires_grad", "tensor",
        "value", "version", "written",
    )  # fmt: skip

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.version = None if tensor.is_inference() else version_of(tensor)
        self.leaf = tensor.is_leaf
        self.requires_grad = tensor.requires_grad
        self.grad: torch.Tensor | None = None
        self.value: torch.Tensor | None = None
        self.memory: torch.Tensor | None = None  # an alias, where the copy is not lazy
        self.place: tuple[Any, ...] | None = None  # where its memory is, if the copy is lazy
        self.written = False
        self.only_watched = ""
        self.plain = (
            tensor.layout is torch.strided
            and not tensor.is_nested
            and (type(tensor) in _OF_TORCH or not has_own_memory(tensor))
        )

    def look(self) -> None:
        """Whether it was written; asked before any is put back, for views count writes together."""
        if self.version is not None and version_of(self.tensor) != self.version:
            self.written = True

    def put_back(self) -> bool:
        """Whether that could be done."""
        tensor = self.tensor
        if self._is_as_it_was():  # nearly always
            return True
        if self.leaf and not tensor.is_leaf and not is_view(tensor):
            tensor.detach_()  # written with something that has a gradient
        done = self._put_values_back()
        if self.leaf:
            if tensor.requires_grad is not self.requires_grad:
                tensor.requires_grad_(self.requires_grad)
            if tensor.grad is not self.grad:
                tensor.grad = self.grad
        if done and self.version is not None and version_of(tensor) != self.version:
            # A graph that has saved it finds it as it was: bit for bit the same value.
            set_versions((tensor,), (self.version,))
        return done

    def _is_as_it_was(self) -> bool:
        """Whether a tensor with a lazy copy is: what writes to it gives it other memory."""
        tensor = self.tensor
        return (
            not self.written
            and self.place is not None
            and self.place == _place_of(tensor)
            and (
                not self.leaf
                or (
                    tensor.is_leaf
                    and tensor.requires_grad is self.requires_grad
                    and tensor.grad is self.grad
                )
            )
        )

    def _put_values_back(self) -> bool:
        tensor, value, memory = self.tensor, self.value, self.memory
        if self.place is not None:
            assert value is not None
            if self.place != _place_of(tensor):
                self._put_memory_back(value)
            return True
        if memory is not None and _was_freed(memory):
            return True  # by whoever owns it: sharded weights are, between two uses
        if memory is not None and not _same_memory(tensor, memory):
            tensor.data = memory  # `.data = …` gave it other memory, a shape or a type
        written = self.written
        if value is None:
            return not (written and self.only_watched)
        if memory is not None:
            held = stored(memory)
            if written or not tensor.is_cpu or not _same_bits(held, value):
                _write(held, value)
        elif self.version is None:
            _write(tensor, value)
        elif written:
            tensor.data = value  # sparse, nested: it has no memory of its own to write to
        return True

    def _put_memory_back(self, value: torch.Tensor) -> None:
        """The copy has the very memory that the tensor had: it gets that back."""
        tensor = self.tensor
        rebound = base_of(tensor) is None and tensor.is_leaf and self.version is not None
        if rebound or tensor.shape != value.shape or tensor.dtype != value.dtype:
            tensor.data = value
        else:  # its memory has further owners that torch knows of: they must see it, too
            _write(stored(tensor.data), stored(value))


def has_own_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor is one in name alone: it consists of others, and knows how (`DTensor`)."""
    return type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def _write(tensor: torch.Tensor, value: torch.Tensor) -> None:
    if tensor.shape != value.shape:
        tensor.data = value
        return
    with torch.inference_mode(tensor.is_inference()):
        tensor.copy_(value)


def _has_no_values(tensor: torch.Tensor) -> bool:
    if tensor.is_meta or is_of_a_transform(tensor):
        return True
    return type(tensor) not in _OF_TORCH and is_fake(tensor)


def _memory(tensor: torch.Tensor) -> int | None:
    """A number of the memory that a tensor lies in."""
    try:
        return int(storage_id(tensor.untyped_storage()))
    except (RuntimeError, NotImplementedError):
        return None  # sparse, or of a class of its own


def _was_freed(memory: torch.Tensor) -> bool:
    return memory.numel() > 0 and memory.untyped_storage().nbytes() == 0


def _same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    return _place_of(one) == _place_of(other)


def _place_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Which memory a tensor shows, and how."""
    # `data_ptr` would let lazy copies part: it is made for those who write.
    return first_element(tensor), tensor.shape, tensor.stride(), tensor.dtype


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether nothing was written; memory that may be read only must not be touched then."""
    if one.is_quantized:
        return False
    if one.is_complex():
        one, other = (torch.view_as_real(tensor.resolve_conj()) for tensor in (one, other))
    bits = _BITS[one.element_size()]
    return torch.equal(one.resolve_neg().view(bits), other.resolve_neg().view(bits))
