"""Which tensors the native kernel may read, and what the others are.

`is_plain` asks one question of torch: which dispatch keys does the tensor carry? A plain strided
CPU tensor carries exactly those that a fresh one carries (or a fresh one made in inference mode).
Whatever is special about a tensor (conjugate or negative bit, sparse, nested or quantised layout, a
functorch wrapper, a device, a mode that has wrapped it) is one more key or another key. Subclasses
without a dispatch of their own carry the same keys, hence the exact type.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import torch

from nethook.torch_private import (
    DispatchKey,
    dispatch_keys,
    is_zero_tensor,
    without_dispatch_modes,
    without_function_overrides,
    without_transforms,
)

EXACT: Final = frozenset({torch.Tensor, torch.nn.Parameter})
"""The types that are plain; a subclass may mean anything by its elements."""


@contextmanager
def plain_torch() -> Iterator[None]:
    """Makes plain tensors: this room may be imported while a mode is on that makes other ones."""
    with without_dispatch_modes(), without_transforms(), without_function_overrides():
        yield


def _plain_keys() -> frozenset[int]:
    with plain_torch():
        with torch.inference_mode(False):
            fresh = torch.empty(0, device="cpu")
        with torch.inference_mode():
            inference = torch.empty(0, device="cpu")
    return frozenset((dispatch_keys(fresh).raw_repr(), dispatch_keys(inference).raw_repr()))


PLAIN: Final = _plain_keys()
"""The sets of dispatch keys, as numbers, that a plain strided CPU tensor may have."""

# What the torch kernel cannot read either, or what means something else than its elements.
_NOT_SUMMARISED: Final = (
    ("functorch", ("FuncTorchBatched", "FuncTorchGradWrapper", "BatchedNestedTensor")),
    ("functional", ("Functionalize",)),
    ("nested", ("NestedTensorCPU", "NestedTensorCUDA", "AutogradNestedTensor")),
    ("meta", ("Meta",)),
)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the native kernel may read the tensor's memory."""
    return type(tensor) in EXACT and dispatch_keys(tensor).raw_repr() in PLAIN


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether a tensor is one that is summarised."""
    return (is_plain(tensor) and tensor.dtype not in _UNREADABLE) or kind(tensor) is None


def kind(tensor: torch.Tensor) -> str | None:
    """What a tensor is that is not summarised ("sparse", "nested", …); None for all others."""
    from torch.nn.parameter import is_lazy

    if is_lazy(tensor):
        return "uninitialized"
    if type(tensor).__name__ == "FakeTensor" and hasattr(tensor, "fake_mode"):
        return "fake"
    if tensor.is_nested:
        return "nested"
    keys = dispatch_keys(tensor)
    if keys.has(DispatchKey.Python) or type(tensor) not in EXACT:
        return "subclass"
    for name, members in _NOT_SUMMARISED:
        if any(
            keys.has(getattr(DispatchKey, member))
            for member in members
            if hasattr(DispatchKey, member)
        ):
            return name
    if tensor.layout is not torch.strided:
        return "mkldnn" if tensor.is_mkldnn else "sparse"
    if tensor.is_quantized:
        return "quantized"
    if tensor.dtype in _UNREADABLE:
        return str(tensor.dtype).removeprefix("torch.")
    # Reading it would end the process. What other devices say of their memory is their own affair.
    here = tensor.device.type in ("cpu", "cuda") and not is_zero_tensor(tensor)
    if here and tensor.numel() and not tensor.untyped_storage().nbytes():
        return "freed"
    return None


# Types that are containers of bits: torch converts them to no number.
_UNREADABLE: Final = frozenset(
    getattr(torch, name)
    for name in (
        *("bits8", "bits16", "bits1x8", "bits2x4", "bits4x2", "float4_e2m1fn_x2"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)),
    )
    if hasattr(torch, name)
)
