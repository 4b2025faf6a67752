"""Direct logit attribution: the parts add up to the logit."""

from __future__ import annotations

import pytest
import torch

from nethook.errors import OptionError
from nethook.interp.lenses.direct import LogitAttribution, logit_attribution
from tests.interp import compiled_networks, families

SUMS = ("gpt2", "llama", "qwen3", "neox", "falcon", "phi3", "opt", "olmo2", "bloom", "vit", "t5")


@pytest.fixture(scope="module")
def found() -> dict[str, LogitAttribution]:
    return {name: logit_attribution(*families.built(name)) for name in SUMS}


@pytest.mark.parametrize("name", SUMS)
def test_the_sum_of_parts_is_the_logit(name: str, found: dict[str, LogitAttribution]) -> None:
    model, inputs = families.built(name)
    with torch.no_grad():
        logits = model(**inputs).logits
    logits = logits[:, -1] if logits.ndim == 3 else logits
    torch.testing.assert_close(found[name].values.sum(0), logits, rtol=1e-5, atol=1e-5)
    assert len(found[name].parts) == len(found[name].values)


def test_a_part_is_read_through_the_frozen_norm(found: dict[str, LogitAttribution]) -> None:
    import nethook

    model, inputs = families.built("llama")
    with torch.no_grad(), nethook.trace(model, "model.layers.*", "model.layers.1.mlp") as tape:
        model(**inputs)
    stream = tape["model.layers.1"].output[:, -1]
    scale = torch.rsqrt(stream.pow(2).mean(-1, keepdim=True) + model.config.rms_norm_eps)
    write = tape["model.layers.1.mlp"].output[:, -1] * scale * model.model.norm.weight
    expected = write @ model.lm_head.weight.T
    index = found["llama"].parts.index("model.layers.1.mlp")
    torch.testing.assert_close(found["llama"].values[index], expected, rtol=1e-4, atol=1e-6)


def test_in_the_compiled_network_the_last_attention_says_it_all() -> None:
    texts, answers = compiled_networks.repeats(2)
    parts = logit_attribution(compiled_networks.induction(), texts)
    assert parts.parts == ("embedding", "blocks.0.attention", "blocks.1.attention", "bias")
    said = parts.of(int(answers[0]))[:, 0]
    assert said[[0, 1, 3]].tolist() == [0.0, 0.0, 0.0]
    assert float(said[2]) > 0.999
    difference = parts.of(int(answers[0]), against=int(answers[1]))
    torch.testing.assert_close(difference, parts.of(int(answers[0])) - parts.of(int(answers[1])))
    assert "blocks.1.attention  +1.0000" in repr(parts)


def test_where_there_is_no_sum_it_says_so() -> None:
    with pytest.raises(OptionError, match=r"not the sum of what the blocks' parts wrote"):
        logit_attribution(*families.built("bert"))
    with pytest.raises(OptionError, match="the model is not linear"):
        logit_attribution(*families.built("modernbert"))
