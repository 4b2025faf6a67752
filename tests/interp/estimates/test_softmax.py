"""The closed form of one changed key against brute force."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nethook.interp.estimates.softmax import SoftmaxEffect
from nethook.tracing.attention.recompute import of_sdpa


def _given(kv_heads: int, **more: Any) -> dict[str, Any]:
    random = torch.Generator().manual_seed(0)

    def draw(heads: int, size: int) -> torch.Tensor:
        return 3 * torch.randn(2, heads, 5, size, generator=random, dtype=torch.float64)

    given = {"query": draw(4, 3), "key": draw(kv_heads, 3), "value": draw(kv_heads, 2)}
    return given | more | ({"enable_gqa": True} if kv_heads < 4 else {})


CASES = [
    _given(4), _given(4, is_causal=True), _given(2, is_causal=True), _given(2, scale=0.3),
    _given(4, attn_mask=torch.ones(5, 5).tril(1).bool()),
]  # fmt: skip


@pytest.mark.parametrize("given", CASES)
def test_each_key_alone_by_brute_force(given: dict[str, Any]) -> None:
    random = torch.Generator().manual_seed(1)
    grad = torch.randn(2, 4, 5, 2, generator=random, dtype=torch.float64)
    source = given["key"] + torch.randn(given["key"].shape, generator=random, dtype=torch.float64)
    effect = SoftmaxEffect(given, grad)
    value = given["value"].repeat_interleave(4 // given["value"].shape[1], 1)
    slope = grad @ value.transpose(-2, -1)
    base = of_sdpa(**given)
    found = effect.of_each_key(source)
    for position in range(5):
        key = given["key"].clone()
        key[:, :, position] = source[:, :, position]
        new = of_sdpa(**(given | {"key": key}))
        torch.testing.assert_close(found[..., position], ((new - base) * slope).sum((-2, -1)))
    new = of_sdpa(**(given | {"key": source}))
    torch.testing.assert_close(effect.of_all_keys(source), ((new - base) * slope).sum((-2, -1)))


def test_each_query_alone_by_brute_force() -> None:
    given = _given(4, is_causal=True)
    random = torch.Generator().manual_seed(1)
    grad = torch.randn(2, 4, 5, 2, generator=random, dtype=torch.float64)
    source = torch.randn(given["query"].shape, generator=random, dtype=torch.float64)
    found = SoftmaxEffect(given, grad).of_queries(source)
    base = of_sdpa(**given) @ given["value"]
    for position in range(5):
        query = given["query"].clone()
        query[:, :, position] = source[:, :, position]
        new = of_sdpa(**(given | {"query": query})) @ given["value"]
        torch.testing.assert_close(found[..., position], ((new - base) * grad).sum((-2, -1)))


def test_saturated_rows_stay_finite() -> None:
    given = _given(4)
    given["key"][:, :, 0] *= 1e4
    grad = torch.ones(2, 4, 5, 2, dtype=torch.float64)
    found = SoftmaxEffect(given, grad).of_each_key(-given["key"])
    assert found.isfinite().all()
