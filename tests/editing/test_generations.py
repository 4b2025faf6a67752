"""Prompt and generated tokens: with and without a cache, in batches, under padding on each side."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import nethook
from nethook import edits
from nethook.editing.generations import Generation
from nethook.errors import EditError, OptionError, UnfiredError

IDS = torch.tensor([[3, 5, 7, 11, 13], [2, 4, 6, 8, 10]])
STEER = torch.linspace(-3, 3, 16, dtype=torch.double)
BLOCK = {"gpt2": "transformer.h.0", "llama": "model.layers.0"}


@pytest.fixture(scope="module")
def gpt2():
    torch.manual_seed(0)
    config = GPT2Config(n_layer=2, n_head=2, n_embd=16, vocab_size=32, n_positions=32)
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    return GPT2LMHeadModel(config).double().eval()


@pytest.fixture(scope="module")
def llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=32, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config).double().eval()


def generated(model, ids, mask=None, new=4, **given):
    mask = torch.ones_like(ids) if mask is None else mask
    with torch.no_grad():
        out = model.generate(
            ids, attention_mask=mask, max_new_tokens=new, do_sample=False, pad_token_id=0,
            output_logits=True, return_dict_in_generate=True, **given,
        )  # fmt: skip
    return torch.stack(out.logits), out.sequences


def by_hand(model, ids, block, phase, new=4):
    """The same without nethook: a hook of torch's, and no cache."""
    prompt, logits = ids.shape[1], []

    def move(module, args, output):
        value = output[0] if isinstance(output, tuple) else output
        chosen = torch.zeros(1, value.shape[1], 1, dtype=value.dtype)
        if phase in ("prompt", "all"):
            chosen[:, :prompt] = 1
        if phase in ("decode", "all"):
            chosen[:, prompt:] = 1
        moved = value + 2.0 * chosen * STEER
        return (moved, *output[1:]) if isinstance(output, tuple) else moved

    handle = model.get_submodule(block).register_forward_hook(move)
    with torch.no_grad():
        for _ in range(new):
            last = model(ids, use_cache=False).logits[:, -1]
            logits.append(last.float())  # as `generate` gives them
            ids = torch.cat([ids, last.argmax(-1, keepdim=True)], 1)
    handle.remove()
    return torch.stack(logits), ids


@pytest.mark.parametrize("phase", ["prompt", "decode", "all"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_each_phase_is_what_hooks_do_by_hand_with_and_without_a_cache(name, phase, request):
    model = request.getfixturevalue(name)
    expected, sequences = by_hand(model, IDS, BLOCK[name], phase)
    for cached in (True, False):
        with nethook.edit(model, outputs={BLOCK[name]: edits.steer(STEER, 2.0, phase=phase)}):
            logits, made = generated(model, IDS, use_cache=cached)
            again, _ = generated(model, IDS, use_cache=cached)  # a second generation, same scope
        assert torch.equal(made, sequences)
        torch.testing.assert_close(logits, expected)
        assert torch.equal(logits, again)
    assert not torch.allclose(expected, generated(model, IDS)[0])


@pytest.mark.parametrize("phase", ["prompt", "decode", "all"])
def test_a_batch_padded_on_the_left_is_its_texts_one_by_one(llama, phase):
    edit = {BLOCK["llama"]: edits.steer(STEER, 2.0, phase=phase)}
    short = IDS[:1, :3]
    padded = torch.cat([torch.zeros(1, 2, dtype=torch.long), short], 1)
    batch = torch.cat([padded, IDS[1:]])
    mask = torch.ones_like(batch)
    mask[0, :2] = 0
    with nethook.edit(llama, outputs=edit):
        together, made = generated(llama, batch, mask)
    with nethook.edit(llama, outputs=edit):
        alone, of_short = generated(llama, short)
        other, of_other = generated(llama, IDS[1:])
    assert torch.equal(made[0, 2:], of_short[0])
    assert torch.equal(made[1], of_other[0])
    torch.testing.assert_close(together, torch.cat([alone, other], 1))


def test_left_and_right_padding_and_rows_of_padding_untouched(llama):
    short = IDS[:1, :3]
    pad = torch.zeros(1, 2, dtype=torch.long)
    found = {}
    for side, ids in (("left", [pad, short]), ("right", [short, pad])):
        ids = torch.cat(ids, 1)
        mask = (ids != 0).long()
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        given = {"attention_mask": mask, "position_ids": places, "use_cache": False}
        real = mask[0].bool()
        with torch.no_grad(), nethook.trace(llama, BLOCK["llama"]) as plain:
            llama(ids, **given)
        edit = edits.steer(STEER, 2.0, phase="all")
        with (
            torch.no_grad(),
            nethook.edit(llama, outputs={BLOCK["llama"]: edit}),
            nethook.trace(llama, BLOCK["llama"]) as tape,
        ):
            found[side] = llama(ids, **given).logits[:, real]
        before, after = (t[BLOCK["llama"]].output for t in (plain, tape))
        assert torch.equal(after[:, ~real], before[:, ~real])
        torch.testing.assert_close(after[:, real] - before[:, real], (2.0 * STEER).expand(1, 3, 16))
    torch.testing.assert_close(found["left"], found["right"])


def test_beams_and_embeddings(gpt2):
    edit = {BLOCK["gpt2"]: edits.steer(STEER, 2.0, phase="decode")}
    with nethook.edit(gpt2, outputs=edit):
        beams = [generated(gpt2, IDS, num_beams=3, use_cache=c)[1] for c in (True, False)]
        embedded = gpt2.generate(
            inputs_embeds=gpt2.transformer.wte(IDS).detach(),
            attention_mask=torch.ones_like(IDS), max_new_tokens=4, do_sample=False, pad_token_id=0,
        )  # fmt: skip
        _, made = generated(gpt2, IDS)
    assert torch.equal(*beams)
    assert torch.equal(embedded, made[:, 5:])


def test_what_the_calls_say():
    ids = torch.arange(12).reshape(1, 12)
    cached = Generation()
    assert [cached.prompt_columns(ids[:, a:b], a) for a, b in ((0, 4), (4, 5), (5, 6))] == [4, 4, 4]
    assert cached.prompt_columns(ids[:, :6], 0) == 6  # another text
    pieces = Generation()
    calls = ((0, 4), (4, 8), (8, 9), (9, 11))
    assert [pieces.prompt_columns(ids[:, a:b], a) for a, b in calls] == [4, 8, 8, 8]
    whole = Generation()
    assert [whole.prompt_columns(ids[:, :n], 0) for n in (4, 5, 6)] == [4, 4, 4]
    assert whole.prompt_columns(ids[:, 1:8], 0) == 7  # one more, but other tokens
    assert Generation().prompt_columns(ids[:, 7:8], 7) == 7  # entered in the middle


def test_other_values_and_wrong_phases(gpt2):
    model = torch.nn.Linear(3, 3)
    edit = edits.add(1.0, phase="all")
    x = torch.randn(2, 3)
    with nethook.edit(model, outputs={"": edit}):
        changed = model(x)
    assert torch.equal(changed, model(x) + 1)
    with (
        pytest.raises(EditError, match='phase="decode" needs a model that is called with `input_i'),
        nethook.edit(model, outputs={"": edits.zero(phase="decode")}),
    ):
        model(x)
    with pytest.raises(OptionError, match='`phase` must be "prompt", "decode", "all" '):
        edits.zero(phase="answer")
    with pytest.raises(EditError, match="phase= of zero must be left out in grads="):
        nethook.edit(model, grads={"": edits.zero(phase="all")})
    with (
        pytest.raises(UnfiredError, match="ran 1 time, and phase='decode' means none"),
        nethook.edit(gpt2, outputs={BLOCK["gpt2"]: edits.zero(phase="decode")}),
    ):
        gpt2(IDS)


def test_recipes_keep_the_phase(tmp_path):
    edit = edits.steer(STEER, 2.0, phase="decode", positions=[7])
    edits.save(tmp_path / "r.json", outputs={"h.0": edit})
    assert edits.load(tmp_path / "r.json")["outputs"]["h.0"][""][0] == edit
