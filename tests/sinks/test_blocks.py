from __future__ import annotations

from nethook.sinks.blocks import blocks_of


def test_blocks_are_as_fine_as_there_is_room_for():
    layers = ["wte", *(f"h.{i}.{part}" for i in range(12) for part in ("attn.qkv", "mlp.fc"))]
    assert set(blocks_of(layers, most=16).values()) == {"wte", *(f"h.{i}" for i in range(12))}
    assert set(blocks_of(layers, most=4).values()) == {"wte", "h"}


def test_a_layer_that_is_short_is_a_block_of_its_own():
    assert blocks_of(["fc", "body.0.conv"]) == {"fc": "fc", "body.0.conv": "body.0.conv"}


def test_many_layers_side_by_side_have_no_blocks():
    assert blocks_of(f"layer{i}" for i in range(40)) == {}
    assert blocks_of([]) == {}
