"""Matrices of random numbers that are attributes are found; tables and what changes are not."""

from __future__ import annotations

import torch
from torch import nn

from nethook.watching.facts.plain_tensors import PlainTensors, is_random


class Memory(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.keys = torch.randn(24, 8)
        self.register_buffer("known", torch.randn(24, 8))
        self.positions = torch.arange(192.0).reshape(24, 8).sin()
        self.counts = torch.ones(24, 8)
        self.names = torch.randint(0, 9, (24, 8))
        self.offset = torch.randn(24)
        self.child = nn.Module()
        self.child.values = torch.rand(24, 8)


def addresses(found: list[dict[str, object]]) -> list[object]:
    return [one["address"] for one in found]


def test_plain_matrices_of_random_numbers() -> None:
    torch.manual_seed(0)
    looks = PlainTensors({"net": Memory()})
    found = looks.found(3)
    assert addresses(found) == ["net.keys", "net.child.values"]
    assert found[0] == {"address": "net.keys", "shape": [24, 8], "since": 3}
    assert looks.found(9) == found


def test_what_is_written_replaced_or_new() -> None:
    torch.manual_seed(0)
    model = Memory()
    looks = PlainTensors({"": model})
    assert len(looks.found(0)) == 2
    model.keys.mul_(0.9)  # a memory that is kept by averages
    assert addresses(looks.found(1)) == ["child.values"]
    model.child.values = torch.rand(24, 8)
    model.noise = torch.randn(24, 8)  # drawn in each forward
    assert looks.found(2) == []


def test_what_is_trained_by_hand() -> None:
    model = Memory()
    model.keys.requires_grad_(True)
    assert "keys" not in addresses(PlainTensors({"": model}).found(0))


def test_numbers_with_an_order_are_not_random() -> None:
    torch.manual_seed(0)
    for _ in range(20):
        assert is_random(torch.randn(16, 16))
        assert is_random(3 + torch.rand(4, 64))
    angles = torch.arange(64.0)[:, None] / 10 ** (torch.arange(16.0) / 4)
    assert not is_random(angles.sin())
    assert not is_random(torch.linspace(0, 1, 64).reshape(8, 8))
    assert not is_random(torch.eye(8))
    assert not is_random(torch.randn(64, 1).expand(64, 8).contiguous())
