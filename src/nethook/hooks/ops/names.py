"""Which functions of torch are operations, what they are called, and what they write to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from nethook.torch_private import NOT_OPERATIONS

# Functions that compute no tensor: they read or set what is known about one, or hand it out of
# torch. By name, for the same one exists as a function and as a method.
_NO_OPS = frozenset(
    [
        "__array__", "__bool__", "__complex__", "__contains__", "__delete__", "__dir__",
        "__dlpack__", "__dlpack_device__", "__float__", "__format__", "__get__", "__index__",
        "__int__", "__len__", "__reduce_ex__", "__repr__", "__set__", "__setstate__",
        *NOT_OPERATIONS,
        "allclose", "backward", "can_cast", "const_data_ptr", "data_ptr", "dense_dim", "device",
        "dim", "dim_order", "element_size", "equal", "get_device", "is_coalesced", "is_complex",
        "is_conj", "is_contiguous", "is_distributed", "is_floating_point", "is_inference",
        "is_neg", "is_nonzero", "is_pinned", "is_same_size", "is_set_to", "is_shared",
        "is_signed", "item", "numel", "numpy", "promote_types", "q_per_channel_axis", "q_scale",
        "q_zero_point", "qscheme", "record_stream", "register_hook",
        "register_post_accumulate_grad_hook", "requires_grad_", "result_type", "retain_grad",
        "share_memory_", "size", "sparse_dim", "storage", "storage_offset", "storage_type",
        "stride", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sum",
        "tolist", "untyped_storage",
    ]
)  # fmt: skip

MOST_NAMES = 8192
"""Functions to remember; a program that makes new ones for ever does not fill the memory."""
# The names of the functions met so far. Global, and it only spares time: what a function is called
# is fixed, and it is asked for every operation of every forward that is watched.
known_names: dict[Any, str | None] = {}

SET_ITEM: Callable[..., Any] = torch.Tensor.__setitem__


def op_name(function: Callable[..., Any]) -> str | None:
    """The name of an operation: that of the function, without underscores around it.

    None for a function that computes nothing. `x + y`, `x += y`, `torch.add` are `add`, `1 - x` is
    `rsub`, `x[i]` is `getitem`.
    """
    try:
        return known_names[function]
    except KeyError:
        name = _name(function)
        if len(known_names) < MOST_NAMES:
            known_names[function] = name
        return name
    except TypeError:  # cannot be hashed
        return _name(function)


def _name(function: Callable[..., Any]) -> str | None:
    name: str = getattr(function, "__name__", None) or type(function).__name__
    # An overload of the dispatcher's (torch.ops.aten.add.Tensor) is named after its schema.
    name = name.partition(".")[0]
    if name in _NO_OPS:
        return None
    return name.strip("_") or name


def written_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[torch.Tensor]:
    """The tensors that a call writes its result into; mostly none."""
    name: str = getattr(function, "__name__", None) or ""
    written: list[Any] = []
    if "out" in kwargs:
        out = kwargs["out"]
        written += out if isinstance(out, list | tuple) else [out]
    # Functions such as `F.relu` hand `inplace` on by its name, however they were called.
    in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
    if in_place or kwargs.get("inplace"):
        first = args[0] if args else next(iter(kwargs.values()), None)
        written += first if isinstance(first, list | tuple) else [first]  # torch._foreach_add_
    return [value for value in written if isinstance(value, torch.Tensor)]
