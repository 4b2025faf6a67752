"""Heads on many families of transformers, and on torch's own layers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook import edits
from nethook.errors import NoSuchSiteError, OptionError
from nethook.interp.attention.heads import Heads, heads
from tests.interp import compiled_networks, families

KV_HEADS = {"llama": 2, "qwen3": 2, "gemma2": 2, "falcon": 2, "phi3": 2}
SIZES = {"qwen3": 12}
MIXED_BY = {
    "gpt2": "transformer.h.1.attn.c_proj",
    "llama": "model.layers.1.self_attn.o_proj",
    "falcon": "transformer.h.1.self_attention.dense",
    "bert": "bert.encoder.layer.1.attention.output.dense",
    "vit": "vit.layers.1.attention.o_proj",
    "t5": "decoder.block.1.layer.1.EncDecAttention.o",
}


@pytest.fixture(scope="module")
def found() -> dict[str, Heads]:
    return {name: heads(*families.built(name)) for name in families.ALL}


@pytest.mark.parametrize("name", families.ALL)
def test_heads_are_found_without_a_configuration(name: str, found: dict[str, Heads]) -> None:
    per_layer = {"t5": 3, "decoder": 2}.get(name, 1)
    assert len(found[name]) == families.LAYERS * per_layer
    for row in found[name]:
        assert row.heads == families.HEADS
        assert row.kv_heads == KV_HEADS.get(name, families.HEADS)
        assert row.size == row.value_size == SIZES.get(name, 8)
        assert row.output
        assert len(row.group_of) == row.heads
    if name in MIXED_BY:
        assert found[name][-1].output == MIXED_BY[name]


@pytest.mark.parametrize(
    ("name", "query", "key", "value"),
    [
        ("gpt2", [0, 8], [32, 40], [64, 72]),  # [q|k|v]
        ("gpt2_eager", [0, 8], [32, 40], [64, 72]),
        ("modernbert", [0, 8], [32, 40], [64, 72]),
        ("phi3", [0, 8], [32, 40], [48, 56]),  # two heads of keys and of values
        ("neox", [0, 24], [8, 32], [16, 40]),  # [head][q, k, v]
        ("bloom", [0, 24], [8, 32], [16, 40]),
        ("falcon", [0, 8], [16, 48], [24, 56]),  # [group][q, q, k, v]
        ("encoder", [0, 8], [32, 40], [64, 72]),
    ],
)
def test_fused_projections_are_taken_apart_by_gradient(
    name: str, query: list[int], key: list[int], value: list[int], found: dict[str, Heads]
) -> None:
    row = found[name][0]
    for part, first in ((row.query, query), (row.key, key), (row.value, value)):
        assert part is not None
        assert part.columns is not None
        assert [columns[0] for columns in part.columns[:2]] == first
        assert all(len(columns) == row.size for columns in part.columns)


def test_columns_say_where_zeros_silence_a_head(found: dict[str, Heads]) -> None:
    model, inputs = families.built("falcon")
    row = found["falcon"][0]
    assert row.value is not None
    assert row.value.columns is not None
    with (
        nethook.edit(
            model, outputs={row.value.address: edits.zero_units(row.value.columns[1], dim=-1)}
        ),
        nethook.trace(model, row.address) as tape,
        torch.no_grad(),
    ):
        model(**inputs)
    silent = tape[row.address].output.abs().amax((0, 2, 3)) == 0
    assert silent.nonzero().flatten().tolist() == list(row.queries_of(1)) == [2, 3]


def test_a_norm_across_heads_is_said(found: dict[str, Heads]) -> None:
    row = found["olmo2"][0]
    assert row.query is not None
    assert row.query.columns is None
    assert row.value is not None
    assert row.value.columns is not None
    assert "(all columns in every head)" in repr(found["olmo2"])


@pytest.mark.parametrize("name", ["gpt2", "llama", "neox", "bloom", "gemma2"])
def test_zeroing_a_head_equals_zeroing_its_part_of_the_projection(
    name: str, found: dict[str, Heads]
) -> None:
    model, inputs = families.built(name)
    row = found[name][1]

    def without(value: torch.Tensor) -> torch.Tensor:
        split = value.unflatten(0, (-1, row.heads)) if row.merged else value
        silent = split.index_fill(1, torch.tensor([2]), 0)
        return silent.flatten(0, 1) if row.merged else silent

    with torch.no_grad():
        with nethook.edit(model, outputs={row.address: without}):
            at_the_head = model(**inputs).logits
        units = range(2 * row.value_size, 3 * row.value_size)
        with nethook.edit(model, inputs={row.output: {"[0]": edits.zero_units(units, dim=-1)}}):
            at_the_projection = model(**inputs).logits
    assert torch.equal(at_the_head, at_the_projection)


def test_keys_of_one_query_head_are_not_its_own(found: dict[str, Heads]) -> None:
    row = found["llama"][0]
    row.check_head(3)
    row.check_head(1, "k")
    with pytest.raises(OptionError, match=r"share 2 heads of keys and values.*name the group, 1"):
        row.check_head(3, "k")
    with pytest.raises(OptionError, match=r"from 0 to 3 for .*; got 4"):
        row.check_head(4)
    assert row.queries_of(0) == (0, 1)


def test_rows_are_found_by_operation_module_or_block(found: dict[str, Heads]) -> None:
    rows = found["bert"]
    assert rows["bert.encoder.layer.1"] is rows[1]
    assert rows["bert.encoder.layer.1.attention.self"] is rows[1]
    assert rows[rows[1].address] is rows[1]
    with pytest.raises(NoSuchSiteError, match=r"2 attentions at 'bert.encoder'"):
        rows["bert.encoder"]
    with pytest.raises(NoSuchSiteError, match="no attention at 'cls'"):
        rows["cls"]


def test_the_compiled_network_has_three_heads() -> None:
    texts, _ = compiled_networks.repeats(1)
    rows = heads(compiled_networks.induction(), texts)
    assert [row.heads for row in rows] == [3, 3]
    assert rows["blocks.0"].output == "blocks.0.attention.o"


def test_a_model_without_attention_says_so() -> None:
    with pytest.raises(NoSuchSiteError, match="has no attention"):
        heads(nn.Linear(2, 2), torch.ones(1, 2))


def test_everything_is_left_as_it_was() -> None:
    model, inputs = families.built("gpt2")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    heads(model, inputs)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not nethook.audit(model)
