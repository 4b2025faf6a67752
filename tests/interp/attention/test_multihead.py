"""`nn.MultiheadAttention`, taken apart, equals what torch computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.errors import OptionError
from nethook.interp.attention.multihead import taken_apart, with_heads
from tests.interp import families


def _call(layer: nn.MultiheadAttention, **more: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that a layer gives to the operation."""
    seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    real = F.multi_head_attention_forward

    def spy(*args: Any, **kwargs: Any) -> Any:
        seen.append((args, kwargs))
        return real(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(F, "multi_head_attention_forward", spy)
        x = torch.randn(2, 5, 8)
        layer.train()(x, x, x, **more)
    return seen[0]


@pytest.mark.parametrize("more", [{}, {"attn_mask": torch.ones(5, 5).triu(1).bool()}])
def test_the_parts_make_the_whole(more: dict[str, Any]) -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    nn.init.normal_(layer.in_proj_bias)
    args, kwargs = _call(layer, **more)
    whole = F.multi_head_attention_forward(*args, **kwargs)[0]
    parts = taken_apart(args, kwargs)
    torch.testing.assert_close(parts.mixed(parts.heads), whole)
    torch.testing.assert_close(parts.probabilities.sum(-1), torch.ones(2, 2, 5))


def test_a_changed_head_changes_the_output_by_its_part() -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    args, kwargs = _call(layer)
    parts = taken_apart(args, kwargs)
    answer = with_heads(lambda z: z.index_fill(1, torch.tensor([0]), 0))
    new = answer(args, kwargs, F.multi_head_attention_forward)[0]
    only = parts.heads.index_fill(1, torch.tensor([0]), 0)
    torch.testing.assert_close(new, parts.mixed(only))
    same = with_heads(lambda z: None)(args, kwargs, F.multi_head_attention_forward)[0]
    assert torch.equal(same, F.multi_head_attention_forward(*args, **kwargs)[0])


def test_added_keys_are_refused() -> None:
    args, kwargs = _call(nn.MultiheadAttention(8, 2, batch_first=True, add_zero_attn=True))
    with pytest.raises(OptionError, match="cannot be taken apart into heads"):
        taken_apart(args, kwargs)


def test_a_head_of_torchs_encoder_is_silenced_in_an_edit() -> None:
    model, x = families.built("encoder")
    op = "layers.1.self_attn/multi_head_attention_forward#0"
    silent = with_heads(lambda z: z.index_fill(1, torch.tensor([2]), 0))
    same = with_heads(lambda z: z)
    plain = model(x)
    with nethook.edit(model, answers={op: same}):
        assert torch.equal(model(x), plain)
    with nethook.edit(model, answers={op: silent}):
        edited = model(x)
    with nethook.preserve(model, "layers.1.self_attn.out_proj.weight"), torch.no_grad():
        model.get_parameter("layers.1.self_attn.out_proj.weight")[:, 16:24] = 0
        pruned = model(x.clone().requires_grad_())  # torch's one kernel would round otherwise
    torch.testing.assert_close(edited, pruned, rtol=1e-5, atol=1e-6)
    assert not torch.allclose(edited, plain)
