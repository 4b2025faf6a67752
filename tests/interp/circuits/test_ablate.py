"""Ablation against pruned weights and closed forms."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import nethook
from nethook.errors import OptionError
from nethook.interp.circuits.ablate import ablate
from tests.interp import compiled_networks, families


def last(out: Any) -> torch.Tensor:
    return out.logits[:, -1, 3]


def test_pruning_the_weights_instead_gives_the_same_bits() -> None:
    model, inputs = families.built("gpt2")
    found = ablate(model, inputs, at="transformer.h.*", over="heads", metric=last, rows=1)
    assert found.values.shape == (2, 4, 2)
    for layer in range(2):
        for head in range(4):
            name = f"transformer.h.{layer}.attn.c_proj.weight"
            with nethook.preserve(model, name), torch.no_grad():
                weight = model.get_parameter(name)
                weight[8 * head : 8 * head + 8] = 0  # Conv1D: (inputs, outputs)
                assert torch.equal(found.values[layer, head], last(model(**inputs)))


def test_a_whole_attention_taken_out_leaves_its_bias() -> None:
    model, inputs = families.built("gpt2")
    name = "transformer.h.1.attn"
    found = ablate(model, inputs, at=f"{name}/scaled_dot_product_attention#0", metric=last, rows=1)
    bias = model.get_parameter(f"{name}.c_proj.bias")
    with torch.no_grad(), nethook.edit(model, outputs={name: {"[0]": lambda v: bias.expand_as(v)}}):
        expected = last(model(**inputs))
    torch.testing.assert_close(found.values[0, 0], expected)


def test_frequencies_of_modular_addition_have_a_closed_form() -> None:
    model = compiled_networks.ModularAddition(13, (1, 3))
    a, b = torch.tensor([2, 5, 11]), torch.tensor([4, 9, 0])
    found = ablate(
        model, (a, b), at="square", over=[(slice(0, 9),), (slice(9, 18),)],
        metric=lambda out: out[:, 4],
    )  # fmt: skip
    for cell, without in enumerate(((1,), (3,))):
        expected = model.closed_form(a, b, without=without)[:, 4]
        torch.testing.assert_close(found.values[0, cell], expected, rtol=0, atol=1e-12)


def test_in_the_compiled_network_only_the_two_heads_matter() -> None:
    texts, answers = compiled_networks.repeats(4)
    model = compiled_networks.induction()
    found = ablate(
        model, texts, at="blocks.*", over="heads",
        metric=lambda out: out[torch.arange(len(out)), -1, answers.repeat(len(out) // 4)],
    )  # fmt: skip
    assert (found.effect[:, 1:] == 0).all()
    assert (found.effect[1, 0] < -0.99).all()  # nothing is read
    assert (found.effect[0, 0] < -0.8).all()  # nothing matches: all keys alike


def test_the_mean_is_the_default_with_data() -> None:
    model, inputs = families.built("gpt2")
    data = [{"input_ids": families.tokens(seed=seed)} for seed in (1, 2)]
    found = ablate(model, inputs, at="transformer.h.0.mlp", metric=last, data=data, rows=1)
    with torch.no_grad():
        means = []
        for batch in data:
            with nethook.trace(model, "transformer.h.0.mlp") as tape:
                model(**batch)
            means.append(tape["transformer.h.0.mlp"].output.double())
        mean = torch.cat(means).mean((0, 1)).float()
        with nethook.edit(
            model, outputs={"transformer.h.0.mlp": lambda value: mean.expand_as(value).clone()}
        ):
            expected = last(model(**inputs))
    torch.testing.assert_close(found.values[0, 0], expected)
    one = ablate(
        model, inputs, at="transformer.h.0.mlp", metric=last, data=data[0], each_position=True
    )
    assert not torch.equal(one.values, found.values)
    drawn = ablate(
        model, inputs, at="transformer.h.0.mlp", metric=last, data=data[0], how="resample"
    )
    assert drawn.values.shape == (1, 1, 2)


def test_errors_say_what_to_type() -> None:
    model, inputs = families.built("gpt2")
    asked: dict[str, Any] = {"at": "transformer.h.0", "metric": last}
    with pytest.raises(OptionError, match='`how` must be "zero", "mean" or "resample"; got'):
        ablate(model, inputs, how="freeze", **asked)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match='`data` must be given with how="mean"'):
        ablate(model, inputs, how="mean", **asked)
    with pytest.raises(OptionError, match='`data` must be left out with how="zero"'):
        ablate(model, inputs, how="zero", data=[inputs], **asked)
