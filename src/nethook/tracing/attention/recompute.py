"""Attention probabilities, recomputed from what the attention function was given.

A fused attention (`F.scaled_dot_product_attention`) never makes its probabilities, and
`nn.MultiheadAttention` mostly does not either. Both are determined by the arguments.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F
from torch.nn.attention.bias import CausalBias

from nethook.errors import ReadError
from nethook.torch_private import mask_of_bias

SDPA = "scaled_dot_product_attention"
MHA = "multi_head_attention_forward"

_SDPA_ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
_MHA_SIGNATURE = inspect.signature(F.multi_head_attention_forward)
_LOW_PRECISION = (torch.float16, torch.bfloat16)


def probabilities(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """The probabilities of one call of an attention function, without dropout."""
    recompute: Callable[..., torch.Tensor] = {SDPA: of_sdpa, MHA: of_mha}[name]
    return recompute(*args, **kwargs)


def of_sdpa(*args: Any, **kwargs: Any) -> torch.Tensor:
    """Of `F.scaled_dot_product_attention`: (..., heads, queries, keys), in the type of the query.

    Rows in which every key is masked are zero, as in torch. Half precision is computed in
    float32, as the fused kernels do.
    """
    given = dict(zip(_SDPA_ARGUMENTS, args, strict=False)) | kwargs
    query = given["query"]
    if query.is_nested:
        raise ReadError(
            "an attention was given nested tensors, whose probabilities have no common shape. Run "
            "the model on padded inputs with a mask."
        )
    device = query.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        # It would compute in low precision what the fused kernels do not.
        with torch.autocast(device, enabled=False):
            return _of_sdpa(query, given)
    return _of_sdpa(query, given)


def _of_sdpa(query: torch.Tensor, given: dict[str, Any]) -> torch.Tensor:
    dtype = query.dtype
    if dtype in _LOW_PRECISION:
        query = query.float()
    key: torch.Tensor = given["key"].to(query.dtype)
    scale = given.get("scale")
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1))
    if given.get("enable_gqa") and query.dim() > 2:
        # Several heads of the query share one of the key.
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
    scores = query @ key.transpose(-2, -1) * scale
    if given.get("is_causal"):
        scores = scores.masked_fill(~_causal(scores), -math.inf)
    mask = given.get("attn_mask")
    if isinstance(mask, CausalBias):
        mask = mask_of_bias(mask, query.device)
    if mask is not None:
        if mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask, -math.inf)
        else:
            scores = scores + mask.to(scores.dtype)
    return _softmax(scores).to(dtype)


def of_mha(*args: Any, **kwargs: Any) -> torch.Tensor:
    """Of `F.multi_head_attention_forward`: (batch, heads, queries, keys), or without the batch.

    It is called again, with the one change that it gives its weights, those of every head.
    """
    bound = _MHA_SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    given = dict(bound.arguments)
    # Without weights and with this hint, torch does not look at the mask, which is to be the same.
    hinted = given["is_causal"] and not given["need_weights"] and given["key_padding_mask"] is None
    if hinted:
        shape = (given["query"].size(0), given["key"].size(0))
        given["attn_mask"] = ~_causal(given["query"].new_empty(shape))
    given |= {"need_weights": True, "average_attn_weights": False, "training": False}
    _, weights = F.multi_head_attention_forward(**given)
    assert weights is not None
    if hinted and weights.size(-1) > given["key"].size(0):
        # Keys that were added (add_bias_kv, add_zero_attn) come last, so this hint masks them too.
        weights = weights * _causal(weights)
        weights = weights / weights.sum(-1, keepdim=True)
    return weights


def _causal(scores: torch.Tensor) -> torch.Tensor:
    """Which keys each query may look at, counted from the first of both."""
    return torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()


def _softmax(scores: torch.Tensor) -> torch.Tensor:
    masked = (scores == -math.inf).all(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(masked, 0.0), -1).masked_fill(masked, 0.0)
