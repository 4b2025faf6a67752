"""Senders and readers of the residual stream."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.addresses.inputs import as_inputs
from nethook.errors import NoSuchSiteError, OptionError
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.circuits.stream import difference, find_stream, run_recorded
from tests.interp import families


def test_readers_see_what_was_written_before() -> None:
    stream = find_stream(*families.built("gpt2"))
    assert stream.readers == (
        "transformer.h.0.ln_1", "transformer.h.0.ln_2", "transformer.h.1.ln_1",
        "transformer.h.1.ln_2", "transformer.ln_f",
    )  # fmt: skip
    assert [len(stream.before[reader]) for reader in stream.readers] == [0, 1, 2, 3, 4]


def test_parallel_parts_do_not_see_each_other() -> None:
    stream = find_stream(*families.built("neox"))
    assert [len(stream.before[reader]) for reader in stream.readers] == [0, 0, 2, 2, 4]


def test_the_last_stack_of_an_encoder_and_decoder_is_meant() -> None:
    stream = find_stream(*families.built("t5"))
    assert all(name.startswith("decoder.") for name in (*stream.writes, *stream.readers))
    assert len(stream.writes) == 6


@pytest.mark.parametrize("name", ["gpt2", "llama", "falcon", "bloom"])
def test_what_heads_write_adds_up_to_what_the_attention_writes(name: str) -> None:
    model, inputs = families.built(name)
    stream = find_stream(model, inputs)
    with torch.no_grad():
        one, _ = run_recorded(model, as_inputs(inputs), stream)
        two, _ = run_recorded(model, as_inputs({"input_ids": inputs["input_ids"].flip(0)}), stream)
        attention = next(w for w in stream.writes if w in one.heads)
        heads = [difference(model, stream, (attention, h), two, one) for h in range(4)]
        whole = difference(model, stream, attention, two, one)
    torch.testing.assert_close(torch.stack(heads).sum(0), whole, rtol=1e-4, atol=1e-6)


def test_senders_by_a_name_inside_or_around() -> None:
    stream = find_stream(*families.built("bloom"))
    assert stream.check("transformer.h.0.self_attention") == "transformer.h.0.self_attention.dense"
    assert stream.check(("transformer.h.0.self_attention", 1)) == (
        "transformer.h.0.self_attention.dense", 1,
    )  # fmt: skip
    with pytest.raises(NoSuchSiteError, match="'lm_head' writes nothing"):
        stream.check("lm_head")


@pytest.mark.parametrize("batch_first", [True, False])
def test_what_heads_of_torchs_attention_write_adds_up(batch_first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=batch_first, norm_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    one, two = torch.randn(2, 3, 5, 16)
    stream = find_stream(model, one)
    assert stream.writes[0] == "layers.0.self_attn"
    assert stream.check(("layers.0.self_attn", 1)) == ("layers.0.self_attn", 1)
    with pytest.raises(OptionError, match="`head` must be a number from 0 to 3"):
        stream.check(("layers.0.self_attn", 4))
    with torch.no_grad(), layer_by_layer():
        was, _ = run_recorded(model, as_inputs(one), stream)
        new, _ = run_recorded(model, as_inputs(two), stream)
        name = stream.writes[2]
        heads = [difference(model, stream, (name, head), new, was) for head in range(4)]
        whole = difference(model, stream, name, new, was)
    torch.testing.assert_close(torch.stack(heads).sum(0), whole, rtol=1e-4, atol=1e-5)
