"""`attention_probs`: against eager attention, and against what nn.MultiheadAttention gives."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.errors import NoSuchSiteError, SeveralCallsError
from tests.tracing import architectures
from tests.tracing.architectures import numbers, tokens


def twins(name: str) -> tuple[nn.Module, nn.Module, Any]:
    """A model with fused attention, the same one with eager attention, and inputs."""
    make = getattr(architectures, name)
    torch.manual_seed(0)
    (fused, inputs), (eager, _) = make("sdpa"), make("eager")
    eager.load_state_dict(fused.state_dict())
    return fused.train(), eager.eval(), inputs


@pytest.mark.parametrize("name", ["gpt2", "llama", "vit"])
@pytest.mark.parametrize("padded", [False, True])
def test_they_are_those_of_eager_attention(name: str, padded: bool) -> None:
    fused, eager, inputs = twins(name)
    keep = torch.ones(2, 8, dtype=torch.long)
    if padded and name != "vit":
        keep[1, 5:] = 0
        inputs = {**inputs, "attention_mask": keep}
    with torch.no_grad():
        expected = eager(**inputs, output_attentions=True).attentions
    found = nethook.attention_probs(fused, inputs)
    assert len(found) == len(expected) == 2
    for probs, oracle in zip(found.values(), expected, strict=True):
        torch.testing.assert_close(probs, oracle, rtol=1e-5, atol=1e-6)
    assert all(module.training for module in fused.modules())
    assert not nethook.audit(fused)


def test_relative_positions_and_attention_across_are_those_of_eager_attention() -> None:
    fused, eager, inputs = twins("t5")
    keep = torch.ones(2, 8, dtype=torch.long)
    keep[0, 6:] = 0
    inputs = {**inputs, "attention_mask": keep}
    with torch.no_grad():
        out = eager(**inputs, output_attentions=True)
    decoder = zip(out.decoder_attentions, out.cross_attentions, strict=True)
    expected = [*out.encoder_attentions, *itertools.chain(*decoder)]
    found = nethook.attention_probs(fused, inputs)
    for probs, oracle in zip(found.values(), expected, strict=True):
        torch.testing.assert_close(probs, oracle, rtol=1e-5, atol=1e-6)
    across = nethook.attention_probs(fused, inputs, at="decoder.block.1.layer.1")
    assert across.shape == (2, 4, 5, 8)


def test_grouped_heads_are_counted_as_the_query_has_them() -> None:
    fused, _, inputs = twins("llama")
    probs = nethook.attention_probs(fused, inputs, at="model.layers.0.self_attn")
    assert probs.shape == (2, 4, 8, 8)


def test_queries_that_may_look_at_nothing_get_what_torch_gives_them() -> None:
    """Eager attention gives them all keys alike; the fused one gives them nothing."""
    fused, _, inputs = twins("gpt2")
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[1, :3] = 0
    values: list[torch.Tensor] = []
    original = F.scaled_dot_product_attention
    found = nethook.attention_probs(fused, {**inputs, "attention_mask": mask})

    class Look(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
            result = function(*args, **(kwargs or {}))
            if function is original:
                values.append((args[2], result))
            return result

    with torch.no_grad(), Look():
        fused.eval()(**inputs, attention_mask=mask)
    for probs, (value, result) in zip(found.values(), values, strict=True):
        torch.testing.assert_close(probs @ value, result, rtol=1e-5, atol=1e-6)


OPTIONS = [
    dict(zip(("batch_first", "add_bias_kv", "add_zero_attn", "bias", "kdim"), each, strict=True))
    for each in itertools.product([False, True], [False, True], [False, True], [True], [None, 5])
] + [{"batch_first": True, "bias": False}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_they_are_those_that_multihead_attention_gives(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    kdim = options.get("kdim")
    options = {**options, "vdim": None if kdim is None else 7}
    layer = nn.MultiheadAttention(8, 2, dropout=0.5, **options)
    query, key = numbers(3, 4, 8), torch.randn(3, 5, kdim or 8)
    value = torch.randn(3, 5, 7 if kdim else 8)
    if not options["batch_first"]:
        query, key, value = (each.transpose(0, 1) for each in (query, key, value))
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[1, 3:] = True
    masks: list[dict[str, Any]] = [
        {},
        {"key_padding_mask": padding},
        {"attn_mask": torch.randn(4, 5)},
        {"attn_mask": torch.randn(6, 4, 5).abs() > 2},
        {"attn_mask": torch.ones(4, 5, dtype=torch.bool).triu(2), "key_padding_mask": padding},
        {"key_padding_mask": torch.randn(3, 5)},
    ]
    for mask, need in itertools.product(masks, [True, False]):
        given = nethook.inputs(query, key, value, need_weights=need, **mask)
        found = nethook.attention_probs(layer, given, at="")
        with torch.no_grad():
            _, expected = layer.eval()(query, key, value, average_attn_weights=False, **mask)
        assert torch.equal(found, expected)
        with torch.no_grad():
            _, mean = layer(query, key, value, **mask)
        torch.testing.assert_close(found.mean(1), mean)
        layer.train()


def test_without_a_batch_and_with_a_causal_hint() -> None:
    layer = nn.MultiheadAttention(8, 2)
    x = numbers(4, 8)
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    given = nethook.inputs(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)
    found = nethook.attention_probs(layer, given, at="")
    with torch.no_grad():
        _, expected = layer(x, x, x, attn_mask=causal, average_attn_weights=False)
    assert found.shape == (2, 4, 4)
    torch.testing.assert_close(found, expected)


def test_a_transformer_is_seen_where_it_would_run_fused() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 24, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = numbers(2, 6, 16)
    padding = torch.zeros(2, 6, dtype=torch.bool)
    padding[1, 4:] = True
    with torch.no_grad():
        before = model(x, src_key_padding_mask=padding)
    given = nethook.inputs(x, src_key_padding_mask=padding)
    found = nethook.attention_probs(model, given)
    assert list(found) == [
        "layers.0.self_attn/multi_head_attention_forward#0",
        "layers.1.self_attn/multi_head_attention_forward#0",
    ]
    assert not found["layers.0.self_attn/multi_head_attention_forward#0"][1, :, :, 4:].any()
    with torch.no_grad():
        assert torch.equal(model(x, src_key_padding_mask=padding), before)
        first = model.layers[0].self_attn
        _, expected = first(x, x, x, key_padding_mask=padding, average_attn_weights=False)
    torch.testing.assert_close(next(iter(found.values())), expected)


class Twice(nn.Module):
    """One attention module that is called twice, and one that is called by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.other = nn.MultiheadAttention(8, 2), nn.MultiheadAttention(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = self.shared(x, x, x)[0]
        return F.scaled_dot_product_attention(self.other(x, x, x)[0], x, x)


def test_which_are_meant_and_how_they_are_named() -> None:
    model, x = Twice(), numbers(4, 2, 8)
    shared = "shared/multi_head_attention_forward#0"
    other = "other/multi_head_attention_forward#0"
    assert list(nethook.attention_probs(model, x)) == [
        f"{shared}, call 0", f"{shared}, call 1", other, "/scaled_dot_product_attention#0",
    ]  # fmt: skip
    assert list(nethook.attention_probs(model, x, at=["other"])) == [other]
    assert list(nethook.attention_probs(model, x, at="*")) == [
        f"{shared}, call 0", f"{shared}, call 1", other,
    ]  # fmt: skip
    assert len(nethook.attention_probs(model, x, at=nn.MultiheadAttention)) == 3
    assert nethook.attention_probs(model, x, at="other").shape == (2, 4, 4, 4)
    assert nethook.attention_probs(model, x, at=other).shape == (2, 4, 4, 4)
    assert nethook.attention_probs(model, x, at="/scaled_dot_product_attention#0").shape == (
        4,
        2,
        2,
    )
    assert list(nethook.attention_probs(model, x, at=["**/scaled*"])) == [
        "/scaled_dot_product_attention#0"
    ]


def test_what_is_not_there_is_told() -> None:
    model, x = Twice(), numbers(4, 2, 8)
    with pytest.raises(SeveralCallsError) as several:
        nethook.attention_probs(model, x, at="shared")
    shared = "shared/multi_head_attention_forward#0"
    assert str(several.value) == (
        f"'shared' has 2 attentions ('{shared}, call 0', '{shared}, call 1'): ask for one of them "
        "by its address, or for all with a list, at=[...]."
    )
    with pytest.raises(NoSuchSiteError):
        nethook.attention_probs(model, x, at="attn")
    with pytest.raises(NoSuchSiteError) as elsewhere:
        nethook.attention_probs(model, x, at="other.out_proj")
    assert str(elsewhere.value).startswith(
        "no attention ran at 'other.out_proj'. The model's attentions: 'shared/multi_head"
    )
    plain = nn.Sequential(nn.Linear(8, 8))
    with pytest.raises(NoSuchSiteError) as none:
        nethook.attention_probs(plain, x)
    assert str(none.value) == (
        "this forward called neither F.scaled_dot_product_attention nor nn.MultiheadAttention."
    )
    eager, inputs = architectures.gpt2("eager")
    with pytest.raises(NoSuchSiteError, match=r"trace\(model, '\*\*/softmax'\) reads it"):
        nethook.attention_probs(eager, inputs)


def test_an_edit_around_it_is_seen_and_the_model_is_as_before() -> None:
    fused, _, inputs = twins("gpt2")
    plain = nethook.attention_probs(fused, inputs)
    state = {key: each.clone() for key, each in fused.state_dict().items()}
    random = torch.get_rng_state()
    with nethook.edit(fused, outputs={"transformer.wte": lambda out: out * 0}):
        edited = nethook.attention_probs(fused, inputs)
    key = "transformer.h.0.attn/scaled_dot_product_attention#0"
    assert not torch.equal(edited[key], plain[key])
    again = nethook.attention_probs(fused, inputs, copy=True)
    assert all(torch.equal(again[each], plain[each]) for each in plain)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(each, state[key]) for key, each in fused.state_dict().items())
    assert not any(each.requires_grad for each in plain.values())


def test_tokens_without_data_give_shapes() -> None:
    fused, _, _ = twins("gpt2")
    found = nethook.attention_probs(fused, {"input_ids": tokens(2, 8).to("meta")})
    assert {tuple(each.shape) for each in found.values()} == {(2, 4, 8, 8)}
    assert all(each.is_meta for each in found.values())


def test_a_causal_bias_of_torchs_counts_from_the_last_query() -> None:
    from torch.nn.attention.bias import causal_lower_right

    class Attends(nn.Module):
        def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(
                query, key, key, attn_mask=causal_lower_right(query.size(-2), key.size(-2))
            )

    model, query, key = Attends(), numbers(1, 2, 3, 4), numbers(1, 2, 5, 4)
    probs = nethook.attention_probs(model, (query, key), at="")
    torch.testing.assert_close(probs @ key, model(query, key))
    assert (probs[0, 0] == 0).int().tolist() == [[0, 0, 0, 1, 1], [0, 0, 0, 0, 1], [0] * 5]


def test_autocast_around_it_does_not_coarsen_it() -> None:
    fused, _, inputs = twins("gpt2")
    key = "transformer.h.0.attn/scaled_dot_product_attention#0"
    exact = nethook.attention_probs(fused, inputs)[key]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = nethook.attention_probs(fused, inputs)[key]
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), exact, rtol=0.05, atol=0.01)
    assert bool(((half.float().sum(-1) - 1).abs() < 0.02).all())
