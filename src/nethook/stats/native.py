"""The native kernel, where it could be built: its function, and the numbers that it knows.

Nobody calls `fold` with a tensor that `guard.is_plain` has not let through: it is given addresses,
and reads them. They are read only, through `torch._C._data_address`, because `data_ptr()` would
turn a copy-on-write tensor into a real copy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import torch

from nethook.stats.fields import WIDTH

Fold = Callable[..., int]

_VERSION: Final = 2  # of the functions of native.cpp

# In the order of `Type` in native.cpp.
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

# The address of the storage's first byte, to be read only.
data_address: Callable[[torch.Tensor], int] = torch._C._data_address  # type: ignore[attr-defined]


def _load() -> Any:
    try:
        from nethook.stats import _native  # type: ignore[attr-defined, unused-ignore]
    except ImportError:
        return None
    # A module left over from another version would write other fields than those that are read.
    is_ours = (getattr(_native, "WIDTH", None), getattr(_native, "VERSION", 1)) == (WIDTH, _VERSION)
    return _native if is_ours else None


_module = _load()

fold: Fold | None = None if _module is None else _module.fold
"""Folds one plain tensor into one row; None where there is no native kernel.

It returns how many elements are not finite.
"""

functions: Any = _module
"""`fold_flat`, `fold_numbers`, `follow` and `fingerprint`, for `flat.py`; or None."""


class NoNativeKernelWarning(UserWarning):
    """The native kernel is not there; summaries are right, and slower."""


def instruction_set() -> str | None:
    """The instruction set that the native kernel uses; None where there is no native kernel."""
    return None if _module is None else str(_module.instruction_set())


def choose(name: str) -> bool:
    """Use `"avx512"`, `"avx2"` or `"baseline"`, if the processor has it (for tests and timing)."""
    return _module is not None and bool(_module.choose(name))


def missing_once() -> None:
    """Say, once in a process, that the torch kernel serves in place of the native one."""
    global _said  # noqa: PLW0603 - once in a process is what it is for
    if fold is None and not _said:
        _said = True
        warnings.warn(
            "nethook was installed without its native kernel (no C++ compiler was found), so the "
            "torch kernel summarises CPU tensors: the same numbers, some 30 times slower. Install "
            "nethook again where a compiler is, or take a built wheel.",
            NoNativeKernelWarning,
            stacklevel=3,
        )


_said = False
