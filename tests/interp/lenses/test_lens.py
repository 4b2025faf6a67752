"""The lens by substitution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.errors import NoSuchSiteError, OptionError
from nethook.interp.lenses.lens import Lens, lens, logits_of
from tests.interp import compiled_networks, families

SEVEN = ("gpt2", "llama", "gemma2", "opt", "bert", "vit", "neox")


def _logits(name: str) -> torch.Tensor:
    model, inputs = families.built(name)
    with torch.no_grad():
        logits: torch.Tensor = model(**inputs).logits
    return logits


@pytest.mark.parametrize("name", SEVEN)
def test_the_last_layer_says_what_the_model_says_bit_for_bit(name: str) -> None:
    model, inputs = families.built(name)
    found = lens(model, inputs)
    logits = _logits(name)
    assert torch.equal(found.logits[-1], logits)
    assert torch.equal(found.final, logits)
    assert len(found.sites) == families.LAYERS


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_one_layer_at_a_time_gives_the_models_own_bits(name: str) -> None:
    model, inputs = families.built(name)
    alone = lens(model, inputs, rows=1)
    assert torch.equal(alone.logits[-1], _logits(name))
    torch.testing.assert_close(lens(model, inputs).logits, alone.logits)


def test_the_first_layer_is_the_head_of_the_norm_of_its_output() -> None:
    model, inputs = families.built("gpt2")
    with torch.no_grad(), nethook.trace(model, "transformer.h.0") as tape:
        model(**inputs)
        expected = model.lm_head(model.transformer.ln_f(tape["transformer.h.0"].output))
    assert torch.equal(lens(model, inputs).logits[0], expected)


def test_sums_inside_blocks_are_put_in_the_last_blocks_place() -> None:
    model, inputs = families.built("gpt2")
    with torch.no_grad(), nethook.trace(model, "transformer.h.1/add#0") as tape:
        model(**inputs)
        middle = tape["transformer.h.1/add#0"].output
        expected = model.lm_head(model.transformer.ln_f(middle))
    found = lens(model, inputs, at=["transformer.h.*/add#0"])
    assert found.sites == ("transformer.h.0/add#0", "transformer.h.1/add#0")
    assert torch.equal(found.logits[1], expected)


def test_only_the_rest_of_the_model_runs_again() -> None:
    model, inputs = families.built("gpt2")
    ran: list[str] = []
    hooks = [
        module.register_forward_pre_hook(lambda *_, name=name: ran.append(name))
        for name, module in model.named_modules()
        if name in ("transformer.h.0.attn", "transformer.ln_f")
    ]
    try:
        lens(model, inputs, at="transformer.h.*")
        assert ran.count("transformer.ln_f") == 2
        ran.clear()
        lens(model, inputs)  # once more to find the blocks, which then do not run again
    finally:
        for hook in hooks:
            hook.remove()
    assert ran.count("transformer.ln_f") == 3
    assert ran.count("transformer.h.0.attn") == 2


def test_top_rank_and_kl_against_plain_torch() -> None:
    model, inputs = families.built("gpt2")
    found = lens(model, inputs)
    ids, probs = found.top(3)
    expected = torch.softmax(found.logits, -1).topk(3, -1)
    assert torch.equal(ids, expected.indices)
    torch.testing.assert_close(probs, expected.values)
    assert (found.rank(ids[0, ..., 0])[0] == 0).all()
    assert (found.rank(ids[1, ..., 2])[1] == 2).all()
    order = found.logits.argsort(-1, descending=True)
    assert int(found.rank(7)[0, 0, 0]) == int((order[0, 0, 0] == 7).nonzero())
    log = torch.log_softmax(found.logits[0], -1)
    kl = F.kl_div(log, torch.log_softmax(found.final, -1), reduction="none", log_target=True)
    torch.testing.assert_close(found.kl()[0], kl.sum(-1))
    assert (found.kl()[-1] == 0).all()


def test_the_compiled_network_knows_the_answer_in_its_last_layer_only() -> None:
    texts, answers = compiled_networks.repeats(3)
    found = lens(compiled_networks.induction(), texts)
    assert (found.logits[0] == 0).all()
    assert torch.equal(found.top(1)[0][1, :, -1, 0], answers)


class Shared(nn.Module):
    """One block, used three times."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Tanh())])
        self.head = nn.Linear(4, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = self.blocks[0](x)
        out: torch.Tensor = self.head(x)
        return out


def test_a_block_that_is_used_again_is_as_many_layers() -> None:
    torch.manual_seed(0)
    model, x = Shared(), torch.randn(2, 5, 4)
    found = lens(model, x)
    assert found.sites == ("blocks.0, call 0", "blocks.0, call 1", "blocks.0, call 2")
    with torch.no_grad():
        hidden = x
        for layer in range(3):
            hidden = model.blocks[0](hidden)
            torch.testing.assert_close(found.logits[layer], model.head(hidden))


def test_a_translator_is_applied_before() -> None:
    model, inputs = families.built("gpt2")
    seen: list[str] = []

    def nothing(value: torch.Tensor, site: str) -> torch.Tensor:
        seen.append(site)
        return torch.zeros_like(value)

    found = lens(model, inputs, translate=nothing)
    assert seen == ["transformer.h.0", "transformer.h.1"]
    assert torch.equal(found.logits[0], found.logits[1])


def test_the_figure_shows_tokens() -> None:
    model, inputs = families.built("gpt2")
    words = [f"word {index}" for index in range(families.VOCABULARY)]
    found = lens(model, inputs)
    figure = found.figure(words)
    ids = found.top(1)[0][:, 0, :, 0]
    assert figure.data[0].text[0][2] == words[int(ids[0, 2])]
    assert list(figure.layout.xaxis.ticktext) == [words[int(i)] for i in inputs["input_ids"][0]]
    assert figure.data[0].z.shape == (2, 7)
    assert float(found.figure(kl=True).data[0].z[1].max()) == 0.0


def test_a_classifier_has_one_column() -> None:
    model, inputs = families.built("vit")
    figure = lens(model, inputs).figure()
    assert figure.data[0].z.shape == (2, 1)
    assert "row 0\n" in repr(lens(model, inputs))


def test_errors_say_what_to_type() -> None:
    model, inputs = families.built("gpt2")
    with pytest.raises(OptionError, match="`rows` must be a positive number of layers"):
        lens(model, inputs, rows=0)
    with pytest.raises(OptionError, match=r"`into` must be a site of the shape of the layers"):
        lens(model, inputs, at="transformer.h.*", into="lm_head")
    with pytest.raises(OptionError, match=r"return values of one shape.*got \(2, 3\), \(2, 5\)"):
        lens(nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 5)), torch.ones(2, 4), at="*")
    with pytest.raises(NoSuchSiteError, match="no stack of blocks ran"):
        lens(nn.Linear(2, 2), torch.ones(1, 2))
    with pytest.raises(OptionError, match="`k` must be a number from 1 to 50"):
        lens(model, inputs).top(0)
    with pytest.raises(OptionError, match="`tokenizer` must have a method decode"):
        lens(model, inputs).figure(tokenizer=3)
    with pytest.raises(OptionError, match="`read` must say where the logits are"):
        logits_of({"ids": torch.ones(2, dtype=torch.long)})


def test_logits_are_found_in_what_models_return() -> None:
    values = torch.ones(2)

    class Output:
        logits = values

    cases: list[Any] = [Output(), values, (values, None), {"a": values}]
    assert all(logits_of(case) is values for case in cases)


def test_nothing_is_left_behind() -> None:
    model, inputs = families.built("gpt2")
    state = torch.get_rng_state()
    assert isinstance(lens(model, inputs), Lens)
    assert torch.equal(torch.get_rng_state(), state)
    assert not nethook.audit(model)


def test_texts_of_tokens_stay_with_the_result(tmp_path: Path) -> None:
    model, inputs = families.built("gpt2")
    found = lens(model, inputs)
    named = found.named(lambda index: f"w{index}")
    first = int(found.top(1)[0][0, 0, -1, 0])
    assert named.table().rows[0][1] == f"w{first}"
    named.save(tmp_path / "a.json")
    again = Lens.load(tmp_path / "a.json")
    assert torch.equal(again.logits, found.logits)
    assert again.table() == named.table()
    assert again.spec()["data"][0]["text"][0][-1] == f"w{first}"
