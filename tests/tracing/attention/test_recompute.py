"""Probabilities of `F.scaled_dot_product_attention` from its arguments, against torch itself."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from nethook.errors import ReadError
from nethook.tracing.attention.recompute import of_mha, of_sdpa


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def explains(probs: torch.Tensor, value: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    """The probabilities times the values are what torch's own attention returns."""
    result = F.scaled_dot_product_attention(*args, **kwargs)
    if kwargs.get("enable_gqa"):
        value = value.repeat_interleave(probs.size(-3) // value.size(-3), -3)
    torch.testing.assert_close(probs @ value, result)
    rows = probs.sum(-1)
    assert bool((torch.isclose(rows, torch.ones_like(rows)) | (rows == 0)).all())


@settings(max_examples=60, deadline=None)
@given(
    queries=st.integers(1, 5),
    keys=st.integers(1, 6),
    heads=st.sampled_from([(4, 4), (4, 2), (4, 1)]),
    mask=st.sampled_from(["none", "bool", "float", "causal", "row", "broadcast"]),
    scale=st.sampled_from([None, 0.3, 2.0]),
    seed=st.integers(0, 1000),
)
def test_every_combination_explains_the_result(
    queries: int, keys: int, heads: tuple[int, int], mask: str, scale: float | None, seed: int
) -> None:
    query = drawn(2, heads[0], queries, 3, seed=seed)
    key, value = drawn(2, heads[1], keys, 3, seed=seed + 1), drawn(2, heads[1], keys, 5, seed=seed)
    options: dict[str, Any] = {"scale": scale, "enable_gqa": heads[0] != heads[1]}
    if mask == "causal":
        options["is_causal"] = True
    elif mask == "float":
        options["attn_mask"] = drawn(2, heads[0], queries, keys, seed=seed + 2)
    elif mask in ("bool", "row", "broadcast"):
        shape = (2, 1, queries, keys) if mask != "broadcast" else (queries, keys)
        allowed = drawn(*shape, seed=seed + 3) > 0
        if mask == "row":
            allowed[0, :, 0] = False  # a query that may look at nothing
        options["attn_mask"] = allowed
    probs = of_sdpa(query, key, value, **options)
    assert probs.shape == (2, heads[0], queries, keys)
    explains(probs, value, query, key, value, **options)


def test_a_row_without_keys_is_zero_and_minus_infinity_is_no_weight() -> None:
    query, key, value = drawn(1, 1, 2, 3), drawn(1, 1, 3, 3, seed=1), drawn(1, 1, 3, 3, seed=2)
    mask = torch.tensor([[-math.inf] * 3, [0.0, -math.inf, 0.0]], dtype=torch.float64)
    probs = of_sdpa(query, key, value, mask)
    assert probs[0, 0, 0].tolist() == [0.0, 0.0, 0.0]
    assert probs[0, 0, 1, 1] == 0.0
    explains(probs, value, query, key, value, mask)


def test_arguments_by_position_dimensions_and_dropout() -> None:
    query, key, value = drawn(4, 3), drawn(5, 3, seed=1), drawn(5, 2, seed=2)
    explains(of_sdpa(query, key, value), value, query, key, value)
    plain = of_sdpa(query, key, value)
    assert torch.equal(of_sdpa(query, key, value, None, 0.9), plain)  # dropout is left out
    causal = of_sdpa(query, key, value, None, 0.0, True)
    assert torch.equal(causal, of_sdpa(query=query, key=key, value=value, is_causal=True))
    assert not torch.equal(causal, plain)
    deep = drawn(2, 3, 4, 5, 6)
    explains(of_sdpa(deep, deep, deep), deep, deep, deep, deep)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    query, key = drawn(1, 2, 4, 8, dtype=torch.float32), drawn(1, 2, 6, 8, dtype=torch.float32)
    query, key = query.to(dtype), key.to(dtype)
    probs = of_sdpa(query, key, key)
    assert probs.dtype == dtype
    exact = of_sdpa(query.double(), key.double(), key.double())
    assert torch.equal(probs, exact.to(dtype)) or dtype == torch.float32
    torch.testing.assert_close(probs.double(), exact, rtol=1e-2, atol=1e-3)


def mha_arguments(**changed: Any) -> dict[str, Any]:
    return {
        "query": drawn(4, 2, 6), "key": drawn(4, 2, 6, seed=1), "value": drawn(4, 2, 6, seed=1),
        "embed_dim_to_check": 6, "num_heads": 2, "in_proj_weight": drawn(18, 6, seed=2),
        "in_proj_bias": drawn(18, seed=3), "bias_k": None, "bias_v": None, "add_zero_attn": False,
        "dropout_p": 0.5, "out_proj_weight": drawn(6, 6, seed=4), "out_proj_bias": drawn(6, seed=5),
        "training": True, "need_weights": False,
    } | changed  # fmt: skip


@pytest.mark.parametrize(("bias", "zeros"), list(itertools.product([False, True], repeat=2)))
def test_the_hint_that_a_mask_is_causal_is_what_counts(bias: bool, zeros: bool) -> None:
    """With the hint and without weights torch never looks at the mask; keys that it adds itself
    come after all others, and so are masked too. The judge is the output."""
    extra = {"bias_k": drawn(1, 1, 6, seed=6), "bias_v": drawn(1, 1, 6, seed=7)} if bias else {}
    wrong = torch.zeros(4, 4, dtype=torch.bool)
    given = mha_arguments(is_causal=True, attn_mask=wrong, add_zero_attn=zeros, **extra)
    probs = of_mha(**given)
    assert probs.shape == (2, 2, 4, 4 + bias + zeros)
    output, _ = F.multi_head_attention_forward(**(given | {"training": False}))
    weight, bias_of = given["in_proj_weight"][12:], given["in_proj_bias"][12:]
    value = F.linear(given["value"], weight, bias_of)
    if bias:
        value = torch.cat([value, extra["bias_v"].expand(1, 2, 6)])
    value = value.view(-1, 2, 2, 3).permute(1, 2, 0, 3)  # (batch, heads, keys, size)
    if zeros:
        value = torch.cat([value, value.new_zeros(2, 2, 1, 3)], 2)
    joined = (probs @ value).permute(2, 0, 1, 3).reshape(4, 2, 6)
    torch.testing.assert_close(
        F.linear(joined, given["out_proj_weight"], given["out_proj_bias"]), output
    )


def test_nested_tensors_are_refused_in_words() -> None:
    parts = [drawn(2, 3, 4), drawn(2, 5, 4)]
    ragged = torch.nested.nested_tensor(parts, layout=torch.jagged)
    with pytest.raises(ReadError, match="nested tensors, whose probabilities have no common shape"):
        of_sdpa(ragged, ragged, ragged)
