"""Lets the native kernel ask tensors without Python: see direct.h.

What it must know of this torch is found out here, from tensors of all kinds, and proven on others:
what the short way says of each must be what Python says. Otherwise the kernel goes on asking
Python, which takes longer and gives the same answers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import torch

from nethook.stats.guard import plain_torch

# Of torch's stable C interface, in the order in which direct.h takes them.
_FUNCTIONS: Final = (
    "aoti_torch_get_dim",
    "aoti_torch_get_sizes",
    "aoti_torch_get_strides",
    "aoti_torch_get_numel",
    "aoti_torch_get_dtype",
    "torch_get_const_data_ptr",
)


def learn(module: Any, dtypes: Sequence[torch.dtype]) -> bool:
    """Has the kernel ask tensors directly from now on, if that gives the answers of Python."""
    try:
        with plain_torch():
            known = [(each, _held(each), _keys(each)) for each in _odd_tensors()]
            # A tensor of complex32 that is made as such warns, once in a process.
            bytes_ = torch.zeros(16, dtype=torch.uint8, device="cpu")
            of_types = [bytes_.view(dtype) for dtype in dtypes]
            if not module.learn_direct(_addresses(), known, of_types):
                return False
            if _agrees(module, [*of_types, *(each for each, _, _ in known), *_shapes()]):
                return True
    except Exception:  # whatever another torch does otherwise
        pass
    module.ask_directly(False)
    return False


def _addresses() -> tuple[int, ...]:
    # A name that a library lacks is looked for in those that it needs, such as libtorch_cpu.
    library = ctypes.CDLL(torch._C.__file__)
    return tuple(
        ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS
    )


def _agrees(module: Any, tensors: Sequence[torch.Tensor]) -> bool:
    """Whether both ways say the same of each."""
    short = [module.describe(each) for each in tensors]
    module.ask_directly(False)
    long = [module.describe(each) for each in tensors]
    module.ask_directly(True)
    return short == long


def _held(tensor: torch.Tensor) -> int:
    """The address of what Python's object stands for."""
    return int(tensor._cdata)


def _keys(tensor: torch.Tensor) -> int:
    return int(torch._C._dispatch_keys(tensor).raw_repr())


def _odd_tensors() -> list[torch.Tensor]:
    """Tensors of which each carries other dispatch keys than the others."""
    with torch.inference_mode(False):
        plain = torch.arange(6.0, device="cpu")
        numbers = torch.ones(2, dtype=torch.complex64, device="cpu")
        found = [plain, torch.empty(3, device="meta"), plain.to_sparse(), numbers.conj()]
        found.append(torch._neg_view(plain))
    with torch.inference_mode():
        found.append(torch.zeros(4, device="cpu"))
    return found


def _shapes() -> list[torch.Tensor]:
    """Plain tensors that lie in memory in many ways."""
    with torch.inference_mode(False):
        base = torch.arange(120.0, device="cpu")
        cube = base.reshape(4, 5, 6)
        return [
            base,
            base[7:50:3],
            cube,
            cube[1:, 2],
            cube.transpose(0, 2),
            cube[:, :1].expand(4, 3, 6),
            base[3],
            base.to(torch.float64).reshape(2, 3, 4, 5)[1],
            torch.nn.Parameter(torch.ones(3, 2, device="cpu")),
            torch.empty(2, 1, 3, 4, device="cpu", memory_format=torch.channels_last),
        ]
