"""The native kernel, where it could be built: its function, and the numbers that it knows.

Nobody calls `fold` with a tensor that `readable.is_plain` has not let through: it is given
addresses, and reads them. They are read only, through `torch_private.data_address`, because
`data_ptr()` would turn a copy-on-write tensor into a real copy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import torch

from nethook.stats.native import kernel, readable
from nethook.torch_private import data_address, dispatch_keys

Fold = Callable[..., int]

# In the order of the passes in pass.cpp.
CODES: Final = {
    dtype: code
    for code, dtype in enumerate(
        (
            torch.bool,
            torch.uint8,
            torch.int8,
            torch.int16,
            torch.uint16,
            torch.int32,
            torch.uint32,
            torch.int64,
            torch.uint64,
            torch.float16,
            torch.bfloat16,
            torch.float32,
            torch.float64,
            torch.complex32,
            torch.complex64,
            torch.complex128,
        )
    )
}
"""dtype -> its number in the native kernel."""

_module = kernel.functions
if _module is not None:
    # What the kernel asks a tensor by itself: see tensor.h.
    _module.learn_torch(
        {
            "Tensor": torch.Tensor,
            "Parameter": torch.nn.Parameter,
            "data_address": data_address,
            "keys": dispatch_keys,
            "strided": torch.strided,
            "plain": tuple(readable.PLAIN),
            "types": tuple(CODES),
        }
    )

fold: Fold | None = None if _module is None else _module.fold
"""Folds one plain tensor into one row; None where there is no native kernel.

It returns how many elements are not finite.
"""

fold_tensor: Fold = getattr(_module, "fold_tensor", None)  # type: ignore[assignment]
"""Where there is `fold`: folds a tensor into the slot at an address, see `rows.Slot`.

It returns how many elements are not finite, NOT_PLAIN or OTHER_UNITS.
"""

number_of: Callable[[torch.Tensor], float | None] = getattr(_module, "number_of", None)  # type: ignore[assignment]
"""Where there is `fold`: the value of a plain tensor of no dimensions, in float32 or float64."""

bytes_of: Callable[[torch.Tensor], int] = getattr(_module, "bytes_of", None)  # type: ignore[assignment]
"""Where there is `fold`: the bytes of a plain tensor's elements; -1 where it is not plain."""

NOT_PLAIN: Final = -1
"""The kernel may not read the tensor."""
OTHER_UNITS: Final = -2
"""The slot has unit bits for another number of units."""

functions: Any = _module
"""Everything else that the kernel can do, for `tables.py` and for whole windows; or None."""


class NoNativeKernelWarning(UserWarning):
    """The native kernel is not there; summaries are right, and slower."""


has_warned = False
"""Whether this process was warned that there is no native kernel."""


def instruction_set() -> str | None:
    """The instruction set that the native kernel uses; None where there is no native kernel."""
    return None if _module is None else str(_module.instruction_set())


def choose(name: str) -> bool:
    """Use `"avx512"`, `"avx2"` or `"baseline"`, if the processor has it (for tests and timing)."""
    return _module is not None and bool(_module.choose(name))


def missing_once() -> None:
    """Warn, once in a process, that the torch kernel serves in place of the native one."""
    global has_warned  # noqa: PLW0603 - once in a process is what it is for
    if fold is None and not has_warned:
        has_warned = True
        # With `python -W error` it would end a summary, and switch off a watch: slow is no failure.
        with suppress(NoNativeKernelWarning):
            warnings.warn(
                "nethook was installed without its native kernel (no C++ compiler was found), so "
                "the torch kernel summarises CPU tensors: the same numbers, about 30 times slower. "
                "Install nethook again where a compiler is, or take a built wheel.",
                NoNativeKernelWarning,
                stacklevel=3,
            )
