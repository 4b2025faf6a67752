"""`nn.MultiheadAttention`, taken apart: its heads are inside one operation.

`F.multi_head_attention_forward` projects, attends, mixes and returns; `out_proj` is never called.
Here the same is computed step by step from the operation's arguments, so that the heads can be read
and changed before they are mixed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

from nethook.errors import OptionError
from nethook.tracing.attention.recompute import of_mha

_SIGNATURE = inspect.signature(F.multi_head_attention_forward)


@dataclass(frozen=True, eq=False)
class Parts:
    """(batch, heads, tokens, size), the probabilities, and what mixes the heads."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    probabilities: torch.Tensor  # (batch, heads, queries, keys)
    heads: torch.Tensor  # probabilities @ value
    weight: torch.Tensor
    bias: torch.Tensor | None
    batched: bool
    given: dict[str, Any]  # the arguments of the operation

    def mixed(self, heads: torch.Tensor) -> torch.Tensor:
        """What the operation returns for these heads: (queries, batch, width)."""
        flat = heads.transpose(1, 2).flatten(-2)  # (batch, queries, width)
        out = F.linear(flat, self.weight, self.bias).transpose(0, 1)
        return out if self.batched else out.squeeze(1)

    @property
    def scores_beside(self) -> torch.Tensor:
        """What is added to queries @ keys before the softmax: masks, but for one number per row."""
        query, key = self.query.double(), self.key.double()
        product = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5
        beside: torch.Tensor = self.probabilities.double().log() - product
        return beside

    def again(self, new: Mapping[Any, torch.Tensor]) -> dict[str, Any]:
        """Arguments with which the operation attends with other queries, keys or values.

        They are given as they are, and projected by the identity: masks and dropout are torch's.
        """
        own = {"q": self.query, "k": self.key, "v": self.value}
        eye = torch.eye(self.weight.shape[1], dtype=self.weight.dtype, device=self.weight.device)
        flat = {}
        for name, part in zip(("query", "key", "value"), "qkv", strict=True):
            tokens = new.get(part, own[part]).permute(2, 0, 1, 3).flatten(-2)
            flat[name] = tokens if self.batched else tokens.squeeze(1)
        weights = dict.fromkeys((f"{part}_proj_weight" for part in "qkv"), eye)
        whole = {"use_separate_proj_weight": True, "in_proj_weight": None, "in_proj_bias": None}
        return {**self.given, **flat, **weights, **whole}

    def put(self, new: torch.Tensor, returned: Any) -> Any:
        """What the operation returns with other heads in the place of its own.

        The change alone is added, so that without one the bits are those of torch.
        """
        delta = self.mixed(new) - self.mixed(self.heads)
        return (returned[0] + delta.to(returned[0].dtype), *returned[1:])


def taken_apart(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Parts:
    """The parts of one call of `F.multi_head_attention_forward`."""
    bound = _SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    if (
        any(given[name] is not None for name in ("bias_k", "bias_v", "static_k", "static_v"))
        or (given["add_zero_attn"])
    ):
        raise OptionError(
            "an nn.MultiheadAttention with add_bias_kv or add_zero_attn cannot be taken apart into "
            "heads: its keys are not those that it was given."
        )
    tokens = [given[name] for name in ("query", "key", "value")]
    batched = tokens[0].ndim == 3
    if not batched:
        tokens = [t.unsqueeze(1) for t in tokens]
    width, count = given["embed_dim_to_check"], given["num_heads"]
    if given["use_separate_proj_weight"]:
        weights = [given[f"{name}_proj_weight"] for name in "qkv"]
    else:
        weights = list(given["in_proj_weight"].split(width))
    bias = given["in_proj_bias"]
    biases = [None] * 3 if bias is None else list(bias.split(width))
    query, key, value = (
        # (tokens, batch, width) to (batch, heads, tokens, size)
        F.linear(t, w, b).unflatten(-1, (count, -1)).permute(1, 2, 0, 3)
        for t, w, b in zip(tokens, weights, biases, strict=True)
    )
    probabilities = of_mha(*args, **kwargs)
    if not batched:
        probabilities = probabilities.unsqueeze(0)
    return Parts(
        query, key, value, probabilities, probabilities @ value, given["out_proj_weight"],
        given["out_proj_bias"], batched, dict(given),
    )  # fmt: skip


def parts_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Parts:
    """The same, where heads are to be measured: an error where dropout makes others of them."""
    given = _SIGNATURE.bind(*args, **kwargs).arguments
    if given.get("training", True) and given["dropout_p"]:
        raise OptionError(
            "the heads of an nn.MultiheadAttention in training mode cannot be taken apart: its "
            "dropout is inside the operation. Call model.eval() first."
        )
    return taken_apart(args, kwargs)


def with_heads(change: Callable[[torch.Tensor], torch.Tensor | None]) -> Callable[..., Any]:
    """Changes the heads of an `nn.MultiheadAttention` before they are mixed.

        heads = interp.with_heads(lambda z: z.index_fill(1, torch.tensor([2]), 0))
        with nethook.edit(model, answers={"self_attn/multi_head_attention_forward#0": heads}):
            model(x)

    Arguments:
        change: from the heads (batch, heads, queries, size) to new ones, or None for no change.

    Returns:
        An answer for `nethook.edit`.
    """

    def answer(args: tuple[Any, ...], kwargs: dict[str, Any], compute: Any) -> Any:
        returned = compute(*args, **kwargs)
        parts = taken_apart(args, kwargs)
        new = change(parts.heads)
        if new is None or new is parts.heads:
            return returned
        return parts.put(new, returned)

    return answer
