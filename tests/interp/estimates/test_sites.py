"""From patterns to points."""

from __future__ import annotations

import pytest

from nethook.errors import NoSuchSiteError
from nethook.interp.attention.heads import heads
from nethook.interp.estimates.sites import module_points, within
from tests.interp import families


def test_modules_and_operations() -> None:
    model, _ = families.built("gpt2")
    points = module_points(model, ["transformer.h.*", "transformer.h.*/add#0"])
    assert [point.site for point in points] == [
        "transformer.h.0", "transformer.h.1", "transformer.h.0/add#0", "transformer.h.1/add#0",
    ]  # fmt: skip
    with pytest.raises(NoSuchSiteError):
        module_points(model, "no.such.module")


@pytest.mark.parametrize(
    ("at", "count"),
    [
        ("**", 2), ("transformer.h.1", 1), ("transformer.h.*.attn", 2),
        ("**/scaled_dot_product_attention", 2),
        ("transformer.h.0.attn/scaled_dot_product_attention#0", 1),
    ],
)  # fmt: skip
def test_attentions_by_module_block_or_operation(at: str, count: int) -> None:
    model, inputs = families.built("gpt2")
    found = heads(model, inputs)
    assert len(within(model, found, at)) == count
