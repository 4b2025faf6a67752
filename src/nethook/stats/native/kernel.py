"""The native kernel as a module, where it could be built: whole windows need no torch.

Who reads or writes a run asks here, and so does not wait until torch is imported; who has tensors
asks `binding`.
"""

from __future__ import annotations

from typing import Any, Final

from nethook.stats.fields import WIDTH
from nethook.stats.native import structs

_VERSION: Final = 8  # of the functions of binding.cpp


def _load() -> Any:
    try:
        from nethook.stats.native import _native  # type: ignore[attr-defined, unused-ignore]
    except ImportError:
        return None
    # A module left over from another version would write other fields than those that are read.
    is_ours = (getattr(_native, "WIDTH", None), getattr(_native, "VERSION", 1)) == (WIDTH, _VERSION)
    return _native if is_ours and structs.agree(getattr(_native, "STRUCTS", None)) else None


functions: Any = _load()
"""Everything that the kernel can do; or None."""
