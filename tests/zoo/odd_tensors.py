"""One tensor of each kind that is not a small dense one of floats."""

from __future__ import annotations

import warnings

import torch
from torch import nn

__all__ = ["HUGE", "ODD", "Takes"]

HUGE = 2**40


class Sub(torch.Tensor):
    pass


def odd_tensors():
    """One tensor of each kind that is not a small dense one of floats."""
    dense = torch.randn(8, 4)
    complexes = torch.randn(8, 4, dtype=torch.complex64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "coo": dense.to_sparse(),
            "csr": dense.to_sparse_csr(),
            "csc": dense.to_sparse_csc(),
            "bsr": dense.to_sparse_bsr((2, 2)),
            "nested": torch.nested.nested_tensor([dense[:2], dense[:3]]),
            "jagged": torch.nested.nested_tensor([dense[:2], dense[:3]], layout=torch.jagged),
            "quantised": torch.quantize_per_tensor(dense, 0.1, 0, torch.quint8),
            "mkldnn": dense.to_mkldnn(),
            "meta": torch.empty(8, 4, device="meta"),
            "subclass": dense.as_subclass(Sub),
            "uint4": torch.zeros(8, 4, dtype=torch.uint8).view(torch.uint4),
            "expanded": torch.randn(8, 1, 3).expand(8, HUGE, 3),
            "overlapping": torch.randn(2**13).as_strided((2**12, 2**12), (1, 1)),
            "no rows": torch.zeros(0, 4),
            "no columns": torch.zeros(8, 0),
            "a number": torch.tensor(3.0),
            "complex": complexes,
            "conjugate": complexes.conj(),
            "negative": torch.randn(8, 4, dtype=torch.complex64).conj().imag,
            "complex128": complexes.to(torch.complex128),
            "expanded complex": complexes[:, :1].expand(8, HUGE),
            "bool": dense > 0,
            "uint16": torch.ones(8, 4, dtype=torch.uint16),
            "uint64": torch.ones(8, 4, dtype=torch.uint64),
            "float8": dense.to(torch.float8_e4m3fn),
        }


ODD = odd_tensors()


class Takes(nn.Module):
    """Takes a tensor of any kind, and learns from another."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, odd, x):
        return self.fc(x)
