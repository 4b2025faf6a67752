"""Tensors of every kind that torch can make, for the tests of both kernels."""

from __future__ import annotations

import math
import warnings

import numpy as np
import torch
from torch import nn


class Labelled(torch.Tensor):
    """A subclass with no dispatch of its own."""


class Wrapped(torch.Tensor):
    """A subclass that stands for another tensor and has no memory."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"an observer must not call {func}")


def base():
    x = torch.linspace(-3, 3, 60).reshape(3, 4, 5)
    x[0, 0, 0] = math.nan
    x[1, 1, 1] = math.inf
    return x


def dense_kinds():
    """name -> (tensor, the plain tensor that it means)."""
    x = base()
    c = torch.complex(x, x.flip(0))
    made = {
        "plain": x,
        "transposed": x.transpose(0, 2),
        "strided": x[:, ::2, 1::3],
        "expanded": x[:, :1].expand(3, 7, 5),
        "expanded-all": torch.tensor(2.0).expand(4, 5),
        "as_strided-overlapping": x.as_strided((5, 6), (2, 1), 3),
        "unfolded": x.unfold(2, 3, 1),
        "diagonal": torch.diagonal(x, dim1=1, dim2=2),
        "narrow": x.narrow(1, 1, 2),
        "flipped": x.flip(0, 1),
        "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "channels_last_3d": torch.randn(2, 3, 2, 4, 5).to(memory_format=torch.channels_last_3d),
        "complex": c,
        "conj": c.conj(),
        "conj-strided": c.conj().transpose(0, 1)[::2],
        "real-of-conj": c.conj().imag,  # has the negative bit
        "neg": torch._neg_view(x),
        "neg-complex": torch._neg_view(c),
        "conj-neg": torch._neg_view(c.conj()),
        "real": c.real,
        "imag": c.imag,
        "zero tensor": torch._efficientzerotensor(3, 4),
        "bool view": (x > 0).view(torch.uint8),
        "other dtype": x.view(torch.int32),
        "numpy": torch.from_numpy(np.arange(12.0).reshape(3, 4)[::1, ::2]),
        "requires grad": x.clone().requires_grad_(),
        "in a graph": x.clone().requires_grad_() * 2,
        "parameter": nn.Parameter(x.clone()),
        "buffer": nn.Buffer(x.clone()),
        "lazy copy": torch._lazy_clone(x),
        "view of a lazy copy": torch._lazy_clone(x)[1:, ::2],
        "0-d": torch.tensor(1.5),
        "empty": torch.empty(0, 3),
        "64 dims": torch.randn(2, 3).reshape(2, 3, *[1] * 62),
        "shared memory": x.clone().share_memory_(),
    }
    with torch.inference_mode():
        made["inference"] = x * 1
    return made


DENSE = dense_kinds()


def other_kinds():
    x = torch.linspace(-1, 1, 16).reshape(4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = {
            "sparse coo": (x.to_sparse(), "sparse"),
            "sparse csr": (x.to_sparse_csr(), "sparse"),
            "sparse csc": (x.to_sparse_csc(), "sparse"),
            "sparse bsr": (x.to_sparse_bsr((2, 2)), "sparse"),
            "sparse bsc": (x.to_sparse_bsc((2, 2)), "sparse"),
            "hybrid": (x.to_sparse(1), "sparse"),
            "quantized": (torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "quantized"),
            "quantized by channel": (
                torch.quantize_per_channel(x, torch.ones(4), torch.zeros(4), 0, torch.quint8),
                "quantized",
            ),
            "nested": (torch.nested.nested_tensor([x, x[:2]]), "nested"),
            "jagged": (torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged), "nested"),
            "meta": (x.to("meta"), "meta"),
            "subclass": (x.as_subclass(Labelled), "subclass"),
            "wrapper": (Wrapped(x), "subclass"),
            "functional": (torch._to_functional_tensor(x), "functional"),
            "uninitialized": (nn.UninitializedParameter(), "uninitialized"),
            "uninitialized buffer": (nn.parameter.UninitializedBuffer(), "uninitialized"),
        }
        freed = torch.ones(5, 3)
        freed.untyped_storage().resize_(0)
        made["freed"] = (freed, "freed")
        if torch.backends.mkldnn.is_available():
            made["mkldnn"] = (x.to_mkldnn(), "mkldnn")
        with torch._subclasses.FakeTensorMode() as mode:
            made["fake"] = (mode.from_tensor(x), "fake")
    return made


OTHERS = other_kinds()
