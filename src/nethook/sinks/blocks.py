"""Blocks of a model: groups of neighbouring layers, few enough for a page of curves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST: Final = 16
"""Blocks that are shown."""


def blocks_of(layers: Iterable[str], most: int = MOST) -> dict[str, str]:
    """The block of each layer: as much of its address as leaves no more blocks than `most`.

    `transformer.h.3.attn.qkv` is in `transformer.h.3` where there are few enough of these, else in
    `transformer.h`. A model of many layers side by side has no blocks: {}.
    """
    addresses = list(dict.fromkeys(layers))
    deepest = max((address.count(".") + 1 for address in addresses), default=0)
    best: dict[str, str] = {}
    for depth in range(1, deepest + 1):
        blocks = {address: ".".join(address.split(".")[:depth]) for address in addresses}
        if len(set(blocks.values())) > most:
            break
        best = blocks
    return best
