"""Roles on many families of transformers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import NoSuchSiteError
from nethook.interp.attention.roles import Roles, roles
from tests.interp import compiled_networks, families

LAYOUTS = {
    "gpt2": "sequential", "gpt2_eager": "sequential", "llama": "sequential",
    "qwen3": "sequential", "phi3": "sequential", "opt": "sequential", "bloom": "sequential",
    "modernbert": "sequential", "vit": "sequential", "t5": "sequential",
    "encoder_norm_first": "sequential", "neox": "parallel", "falcon": "parallel",
    "gemma2": "post-norm", "olmo2": "post-norm", "bert": "post-norm", "encoder": "post-norm",
    "decoder": "post-norm",
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, Roles]:
    return {name: roles(*families.built(name)) for name in families.ALL}


@pytest.mark.parametrize("name", families.ALL)
def test_the_layout_is_found_numerically(name: str, found: dict[str, Roles]) -> None:
    parts = found[name]
    assert parts.layout == LAYOUTS[name]
    assert len(parts) == families.LAYERS * (2 if name == "t5" else 1)
    for block in parts:
        assert block.attention
        assert block.mlp
        assert block.attention.startswith(f"{block.address}.")


@pytest.mark.parametrize("name", [n for n, layout in LAYOUTS.items() if layout != "post-norm"])
def test_the_output_is_the_input_plus_what_was_written(name: str, found: dict[str, Roles]) -> None:
    model, inputs = families.built(name)
    block = found[name][-1]
    writes = [write.address for write in block.writes]
    # With gradients, because torch runs its own layers as one kernel without.
    with nethook.trace(model, block.address, *writes, inputs=True) as tape:
        _call(model, inputs)
    total = _first(tape[block.address].input)
    for address in writes:
        total = total + _first(tape[address].output).reshape(total.shape)
    torch.testing.assert_close(total, _first(tape[block.address].output), rtol=1e-4, atol=1e-5)


def _call(model: nn.Module, inputs: object) -> object:
    if isinstance(inputs, dict):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple) else model(inputs)


def _first(value: object) -> torch.Tensor:
    while isinstance(value, tuple):
        value = value[0]
    assert isinstance(value, torch.Tensor)
    return value


def test_what_runs_before_and_after(found: dict[str, Roles]) -> None:
    parts = found["opt"]
    assert parts.before[-1] == "model.decoder.project_in"
    assert parts.readout == (
        "model.decoder.final_layer_norm",
        "model.decoder.project_out",
        "lm_head",
    )
    assert found["bert"].readout == ("cls",)
    assert found["gpt2"].blocks == ("transformer.h.0", "transformer.h.1")
    assert found["gpt2"].attention == ("transformer.h.0.attn", "transformer.h.1.attn")
    assert found["gpt2"].mlp == ("transformer.h.0.mlp", "transformer.h.1.mlp")


def test_cross_attention_is_a_write_of_its_own(found: dict[str, Roles]) -> None:
    assert [write.role for write in found["t5"]["decoder.block.0"].writes] == [
        "attention", "cross-attention", "mlp",
    ]  # fmt: skip


def test_a_block_without_an_mlp() -> None:
    texts, _ = compiled_networks.repeats(1)
    parts = roles(compiled_networks.induction(), texts)
    assert parts.attention == ("blocks.0.attention", "blocks.1.attention")
    assert parts.mlp == ()
    assert parts[0].mlp is None


def test_a_table_and_the_errors(found: dict[str, Roles]) -> None:
    assert "transformer.h.1  sequential  attention: transformer.h.1.attn" in repr(found["gpt2"])
    with pytest.raises(NoSuchSiteError, match=r"no block 'h.7'; the blocks are 'transformer.h.0'"):
        found["gpt2"]["h.7"]
    with pytest.raises(NoSuchSiteError, match="no stack of blocks ran"):
        roles(nn.Linear(2, 2), torch.ones(1, 2))


def test_nothing_is_left_behind(found: dict[str, Roles]) -> None:
    assert not nethook.audit(families.built("gpt2")[0])
