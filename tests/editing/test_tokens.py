"""Absolute positions of tokens: under caches, under padding on either side, in any module."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

import nethook
from nethook import edits
from nethook.editing.tokens import tokens_of
from nethook.errors import EditError


@pytest.fixture(scope="module")
def gpt2():
    torch.manual_seed(0)
    config = GPT2Config(n_layer=2, n_head=2, n_embd=16, vocab_size=32, n_positions=32)
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    return GPT2LMHeadModel(config).eval()


@pytest.fixture(scope="module")
def llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=32, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


IDS = torch.tensor([[3, 5, 7, 11, 13], [2, 4, 6, 8, 10]])
STEER = torch.linspace(-3, 3, 16)


@pytest.mark.parametrize("positions", [[1], slice(6, None), [7], slice(3, 7), -1])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_generate_with_and_without_a_cache_is_the_same(name, positions, request):
    model = request.getfixturevalue(name)
    block = "transformer.h.0" if name == "gpt2" else "model.layers.0"
    edit = edits.steer(STEER, 2.0, positions=positions)

    def generated(use_cache):
        with torch.no_grad(), nethook.edit(model, outputs={block: edit}):
            return model.generate(
                IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=5, do_sample=False,
                use_cache=use_cache, pad_token_id=0,
                output_logits=True, return_dict_in_generate=True,
            )  # fmt: skip

    if positions == -1:  # the last token of each call: only the cache makes it one per token
        generated(True)
        return
    with_cache, without = generated(True), generated(False)
    assert torch.equal(with_cache.sequences, without.sequences)
    torch.testing.assert_close(torch.stack(with_cache.logits), torch.stack(without.logits))
    plain = model.generate(
        IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=5, do_sample=False,
        pad_token_id=0, output_logits=True, return_dict_in_generate=True,
    )  # fmt: skip
    assert not torch.allclose(torch.stack(plain.logits), torch.stack(with_cache.logits))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("positions", [0, -1, [1, 2], slice(1, None)])
def test_padding_changes_nothing(llama, side, positions):
    short = IDS[:1, :3]
    edit = edits.steer(STEER, 2.0, positions=positions)
    with torch.no_grad(), nethook.edit(llama, outputs={"model.layers.0": edit}):
        alone = llama(short).logits
    pad = torch.zeros(1, 2, dtype=torch.long)
    order = [pad, short] if side == "left" else [short, pad]
    ids = torch.cat([torch.cat(order, 1), IDS[1:]])
    mask = torch.ones_like(ids)
    mask[0, : 2 if side == "left" else None] = 0
    if side == "right":
        mask[0] = torch.tensor([1, 1, 1, 0, 0])
    places = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad(), nethook.edit(llama, outputs={"model.layers.0": edit}):
        padded = llama(ids, attention_mask=mask, position_ids=places).logits
    torch.testing.assert_close(padded[0][mask[0].bool()], alone[0])


def test_operations_of_attention_by_position(gpt2):
    site = "transformer.h.0.attn/scaled_dot_product_attention"
    with (
        torch.no_grad(),
        nethook.edit(gpt2, outputs={site: edits.zero(positions=2, rows=0)}),
        nethook.trace(gpt2, site) as tape,
    ):
        gpt2(IDS)
    zeroed = ~tape[f"{site}#0"].output.any(-1).any(1)  # (rows, tokens)
    assert zeroed.nonzero().tolist() == [[0, 2]]


def test_the_decoder_of_an_encoder_decoder_counts_its_own_tokens():
    torch.manual_seed(0)
    config = T5Config(
        d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, vocab_size=32,
        decoder_start_token_id=0,
    )  # fmt: skip
    model = T5ForConditionalGeneration(config).eval()
    inputs = {
        "input_ids": IDS, "attention_mask": torch.tensor([[0, 0, 1, 1, 1], [1] * 5]),
        "decoder_input_ids": torch.tensor([[0, 1, 2], [0, 3, 4]]),
    }  # fmt: skip
    with torch.no_grad(), nethook.trace(model, "decoder.block.0.layer.2", "encoder.block.0") as a:
        model(**inputs)
    edit = {
        "decoder.block.0.layer.2": edits.zero(positions=1),
        "encoder.block.0": {"[0]": edits.zero(positions=0)},
    }
    with (
        torch.no_grad(),
        nethook.edit(model, outputs=edit),
        nethook.trace(model, "decoder.block.0.layer.2", "encoder.block.0") as b,
    ):
        model(**inputs)
    decoder = b["decoder.block.0.layer.2"].output
    assert (~decoder.any(-1)).nonzero().tolist() == [[0, 1], [1, 1]]
    first = lambda tape: tape["encoder.block.0"].output[0]  # noqa: E731
    changed = (first(a) != first(b)).any(-1)
    assert changed.nonzero().tolist() == [[0, 2], [1, 0]]


def test_a_part_of_the_model_that_is_called_by_itself(gpt2):
    mask = torch.tensor([[0, 0, 1, 1, 1], [1] * 5])
    with (
        torch.no_grad(),
        nethook.edit(gpt2, outputs={"transformer.h.0": edits.zero(positions=0)}),
        nethook.trace(gpt2, "transformer.h.0") as tape,
    ):
        gpt2.transformer(IDS, attention_mask=mask)
    zeroed = ~tape["transformer.h.0"].output.any(-1)
    assert zeroed.nonzero().tolist() == [[0, 2], [1, 0]]


def test_after_an_error_in_the_forward_the_next_call_counts_anew(gpt2):
    scope = nethook.edit(gpt2, outputs={"transformer.h.0": edits.zero(positions=0)})
    with scope, nethook.trace(gpt2, "transformer.h.0") as tape, torch.no_grad():
        with pytest.raises(IndexError):
            gpt2(IDS + 100, attention_mask=torch.tensor([[0, 1, 1, 1, 1], [1] * 5]))
        gpt2.transformer(IDS)
    assert (~tape["transformer.h.0"].output.any(-1)).nonzero().tolist() == [[0, 0], [1, 0]]


def test_what_the_arguments_say():
    ids = torch.zeros(2, 1, dtype=torch.long)
    assert tokens_of({"x": ids}) is None
    assert tokens_of({"input_ids": ids[0]}) is None
    by_place = tokens_of({"input_ids": ids, "cache_position": torch.tensor([4])})
    assert by_place.positions.tolist() == [[4]]
    assert by_place.counts.tolist() == [[5]]
    by_ids = tokens_of({"input_ids": ids, "position_ids": torch.tensor([[3], [5]])})
    assert by_ids.positions.tolist() == [[3], [5]]
    legacy = ((torch.zeros(2, 2, 6, 8), torch.zeros(2, 2, 6, 8)),)
    assert tokens_of({"inputs_embeds": ids[..., None], "past_key_values": legacy}).positions == 6
    longer = torch.tensor([[0, 1, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0]])  # of a static cache

    class Cache:
        def get_seq_length(self):
            return torch.tensor(3)

    static = {"input_ids": ids, "past_key_values": Cache(), "attention_mask": longer}
    assert tokens_of(static).positions.tolist() == [[2], [3]]
    del static["past_key_values"]
    assert tokens_of(static).positions.tolist() == [[-1], [-1]]


def test_under_a_checkpoint_positions_are_refused():
    model, x = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), torch.ones(1, 3, 2, requires_grad=True)
    with (
        pytest.raises(
            EditError, match=r"which token that is cannot be told\. Leave positions= out"
        ),
        nethook.edit(model, outputs={"0": edits.scale(2.0, positions=1)}),
    ):
        checkpoint(model, x, use_reentrant=False).sum().backward()
