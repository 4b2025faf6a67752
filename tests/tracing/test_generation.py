"""Calls of a generation: prompt and decoding steps, on real generation loops."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook import edits
from nethook.errors import NotRunError
from nethook.tracing.generation import note, number

NEW = 4


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_embd=16, n_layer=2, n_head=2, vocab_size=50, n_positions=32,
        bos_token_id=0, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config), "transformer.h.1", "transformer.h.0"


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, vocab_size=50, bos_token_id=0, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config), "model.layers.1", "model.layers.0"


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, vocab_size=50,
        decoder_start_token_id=0, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return T5ForConditionalGeneration(config), "decoder.final_layer_norm", "decoder.embed_tokens"


def generate(model, ids, mask, **options):
    return model.generate(ids, attention_mask=mask, max_new_tokens=NEW, do_sample=False, **options)


@pytest.fixture
def ids():
    return torch.randint(1, 50, (2, 5), generator=torch.Generator().manual_seed(0))


MASKS = {"whole": torch.ones(2, 5).long(), "padded": torch.tensor([[0, 0, 1, 1, 1], [1] * 5])}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("options", [{}, {"use_cache": False}, {"num_beams": 2}], ids=str)
@pytest.mark.parametrize("make", [gpt2, llama, t5])
def test_one_trace_of_a_generation_has_every_call_and_its_step(make, options, mask, ids):
    torch.manual_seed(0)
    model, layer, _ = make()
    model.eval()
    with nethook.trace(model, layer, "lm_head") as tape:
        generate(model, ids, MASKS[mask], **options)
    assert tape.forwards == NEW
    for site in (layer, "lm_head"):  # the head sees one position, in the prompt as well
        calls = tape[site].calls
        assert [call.step for call in calls] == [0, 1, 2, 3]
        assert [call.forward for call in calls] == [0, 1, 2, 3]
        assert [call.index for call in calls.prompt] == [0]
        assert [call.index for call in calls.decode] == [1, 2, 3]
    calls = tape[layer].calls
    assert torch.equal(calls.prompt[0].output, calls[0].output)
    joined = calls.decode.cat(dim=1)
    assert torch.equal(joined, torch.cat([call.output for call in calls[1:]], 1))
    if not options:
        assert calls.decode.stack().shape == (3, 2, 1, 16)


def test_the_decoded_states_are_those_of_one_forward_over_the_whole_text(ids):
    torch.manual_seed(0)
    model, layer, _ = gpt2()
    model.eval()
    with nethook.trace(model, layer) as tape:
        text = generate(model, ids, MASKS["whole"])
    calls = tape[layer].calls
    states = torch.cat([calls.prompt.cat(dim=1), calls.decode.cat(dim=1)], 1)
    # The last token was chosen and never read.
    whole = nethook.features(model, {"input_ids": text[:, :-1]}, at=layer)
    torch.testing.assert_close(states, whole)


def test_several_generations_in_one_scope(ids):
    torch.manual_seed(0)
    model, layer, _ = gpt2()
    model.eval()
    with nethook.trace(model, layer) as tape:
        generate(model, ids, MASKS["whole"])
        generate(model, ids[:1, :3], MASKS["whole"][:1, :3])
    calls = tape[layer].calls
    assert [call.step for call in calls] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert [call.output.shape[1] for call in calls.prompt] == [5, 3]
    assert len(calls.decode) == 6
    tape.clear()
    assert len(tape[layer].calls.prompt) == 0


def test_edits_limited_by_call_touch_decoding_steps_only(ids):
    torch.manual_seed(0)
    model, last, first = gpt2()
    model.eval()

    def states(factor, calls):
        change = {first: edits.scale(factor, calls=calls)}
        # The trace is entered later, so it sees what the edit made.
        with nethook.edit(model, outputs=change), nethook.trace(model, first, last) as tape:
            generate(model, ids, MASKS["whole"])
        return tape

    plain = states(1.0, None)
    changed = states(3.0, slice(1, None))
    for site in (first, last):
        assert torch.equal(plain[site].calls.prompt[0].output, changed[site].calls.prompt[0].output)
    one, other = (tape[first].calls.decode[0].output for tape in (plain, changed))
    assert torch.equal(other, 3.0 * one)  # the same token went in: the prompt chose it
    one, other = (tape[last].calls.decode[0].output for tape in (plain, changed))
    assert not torch.allclose(one, other)
    only = states(3.0, 0)
    assert torch.equal(only[first].calls[0].output, 3.0 * plain[first].calls[0].output)


def test_reading_what_is_not_there():
    model = nn.Sequential(nn.Linear(2, 2))
    with nethook.trace(model, "0") as tape:
        model(torch.ones(1, 3, 2))
        model[0](torch.ones(1, 2))  # on its own: part of no forward
    calls = tape["0"].calls
    assert [call.step for call in calls] == [0, None]
    assert len(calls.prompt) == 1
    assert len(calls.decode) == 0
    with pytest.raises(IndexError, match="call 0 of '0' was asked for, and 0 are here"):
        calls.decode[0]
    with pytest.raises(NotRunError, match="none of the 2 calls of '0' is among these"):
        calls.decode.stack()


def test_a_tape_that_was_cleared_inside_a_forward():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            if self.tape is not None:
                self.tape.clear()
            return self.fc(x)

    model = Net()
    with nethook.trace(model, "fc") as tape:
        model.tape = None
        model(torch.ones(1, 2))
        model.tape = tape
        model(torch.ones(1, 2))
    assert tape["fc"].last.step is None
    assert len(tape["fc"].calls.prompt) == 0


def steps(*lengths, rows=2):
    return number([note((torch.empty(rows, length),), {}) for length in lengths])


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((), []),
        ((5,), [0]),
        ((5, 1, 1), [0, 1, 2]),
        ((1, 1, 1), [0, 1, 2]),  # a prompt of one token
        ((5, 6, 7), [0, 1, 2]),  # no cache
        ((8, 8, 3, 1, 1), [0, 0, 0, 1, 2]),  # a prompt in pieces
        ((5, 1, 7, 1), [0, 1, 0, 1]),
        ((5, 4, 4), [0, 0, 0]),  # several tokens at once: not told from a prompt
    ],
)
def test_steps_by_length(lengths, expected):
    assert steps(*lengths) == expected


def test_arguments_without_positions_say_nothing():
    image = torch.empty(2, 1, 4, 4)
    assert number([note((image,), None), note((image,), None)]) == [0, 0]
    assert number([note((None, "a"), {"b": torch.ones(3)})] * 2) == [0, 0]
    # By name: embeddings for the prompt, then tokens.
    prompt = note((), {"inputs_embeds": torch.empty(2, 5, 8), "mask": torch.empty(2, 5)})
    token = note((), {"input_ids": torch.empty(2, 1), "mask": torch.empty(2, 6)})
    other = note((), {"input_ids": torch.empty(2, 1), "mask": torch.empty(2, 3)})
    assert number([prompt, token]) == [0, 1]
    assert number([prompt, token, other]) == [0, 1, 0]
