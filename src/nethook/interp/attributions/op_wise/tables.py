"""Which operations are linear, which act on each element alone, and which are products.

These lists only spare work. An operation that is in none of them is integrated with several nodes,
which is right for every operation that has a gradient.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from nethook.addresses.nested import tensors

LINEAR: Final = frozenset(
    [
        "H", "T", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
        "add", "alpha_dropout", "as_strided", "as_tensor", "avg_pool1d", "avg_pool2d",
        "avg_pool3d", "batch_norm", "bfloat16", "broadcast_tensors", "broadcast_to", "cat",
        "channel_shuffle", "chunk", "clone", "concat", "concatenate", "constant_pad_nd",
        "contiguous", "copy", "cpu", "cuda", "cumsum", "detach", "diag", "diag_embed",
        "diagonal", "diff", "double", "dropout", "dropout1d", "dropout2d", "dropout3d",
        "expand", "expand_as", "feature_alpha_dropout", "fft", "fill", "flatten", "flip",
        "float", "fold", "gather", "getitem", "half", "hstack", "iadd", "identity", "ifft",
        "imag", "index", "index_add", "index_copy", "index_put", "index_select",
        "interpolate", "irfft", "isub", "mH", "mT", "masked_fill", "masked_scatter",
        "masked_select", "mean", "moveaxis", "movedim", "nanmean", "nansum", "narrow",
        "neg", "negative", "new_tensor", "numpy_T", "pad", "permute", "pixel_shuffle",
        "pixel_unshuffle", "positive", "radd", "ravel", "real", "repeat",
        "repeat_interleave", "requires_grad", "reshape", "reshape_as", "resize", "rfft",
        "roll", "rot90", "rsub", "scatter", "scatter_add", "select", "setitem",
        "slice_scatter", "split", "split_with_sizes", "squeeze", "stack", "sub", "subtract",
        "sum", "swapaxes", "swapdims", "t", "take", "take_along_dim", "tensor_split",
        "tile", "to", "trace", "transpose", "tril", "triu", "type", "type_as", "unbind",
        "unflatten", "unfold", "unsqueeze", "upsample", "upsample_bilinear",
        "upsample_nearest", "view", "view_as", "vsplit", "vstack", "where", "zero",
    ]
)  # fmt: skip
"""Linear in all their tensors together, however many depend on the input."""

PRODUCTS: Final = frozenset(
    [
        "addbmm", "addmm", "addmv", "baddbmm", "bilinear", "bmm", "chain_matmul", "conv1d",
        "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
        "div", "divide", "dot", "einsum", "embedding", "idiv", "imul", "inner", "itruediv",
        "kron", "linear", "matmul", "mm", "mul", "multiply", "mv", "outer", "rmatmul",
        "rmul", "tensordot", "true_divide", "truediv",
    ]
)  # fmt: skip
"""Linear in each of two tensors, which is all if one alone depends on the input."""

QUOTIENTS: Final = frozenset(["true_divide", "div", "truediv", "idiv", "itruediv", "divide"])
"""Of these only the first is linear."""

ELEMENTWISE: Final = frozenset(
    [
        "abs", "absolute", "acos", "acosh", "arctan", "asin", "asinh", "atan", "atanh",
        "celu", "clamp", "clamp_max", "clamp_min", "clip", "cos", "cosh", "elu", "erf",
        "erfc", "erfinv", "exp", "exp2", "expm1", "fabs", "gelu", "hardshrink",
        "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "lgamma", "log", "log10",
        "log1p", "log2", "logit", "logsigmoid", "mish", "nan_to_num", "pow", "prelu",
        "rdiv", "reciprocal", "relu", "relu6", "rpow", "rrelu", "rsqrt", "rtruediv", "selu",
        "sigmoid", "silu", "sin", "sinc", "sinh", "softplus", "softshrink", "softsign",
        "sqrt", "square", "tan", "tanh", "tanhshrink", "threshold", "xlogy",
    ]
)  # fmt: skip
"""Each element of the result depends on the same element of one tensor alone."""


def rule_of(name: str, args: Any, kwargs: Any) -> str:
    """How an operation is treated: "linear", "product", "elementwise", "pool" or "nodes"."""
    if name in LINEAR:
        return "linear"
    depends = [place for place, t in enumerate(_floats((args, kwargs))) if t.requires_grad]
    if name in PRODUCTS:
        if name in QUOTIENTS and depends != [0]:
            return "nodes"
        return "linear" if len(depends) == 1 else "product"
    if name in ELEMENTWISE and len(depends) == 1:
        return "elementwise"
    if name in ("max_pool1d", "max_pool2d"):
        return "pool"
    return "nodes"


def _floats(value: Any) -> list[torch.Tensor]:
    return [t for _, t in tensors(value) if t.is_floating_point()]
