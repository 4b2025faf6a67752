"""Attention that is written out in Python is found by what it computes."""

from __future__ import annotations

import torch
from torch import nn

from nethook.interp.attention.finding import Finder
from nethook.interp.attention.running import run_once


class Written(nn.Module):
    """Attention by `einsum` and raw weights, with batch and heads apart."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Parameter(torch.randn(24, 8) * 0.3)
        self.out = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (x @ self.qkv.T).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / 2
        mixed = torch.einsum("bhqk,bhkd->bqhd", torch.softmax(scores, -1), v)
        out: torch.Tensor = self.out(mixed.flatten(-2))
        return out


class NoAttention(nn.Module):
    """A softmax of four dimensions that no product follows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1) * 2


def test_einsum_attention_is_found() -> None:
    torch.manual_seed(0)
    finder = Finder()
    run_once(Written(), torch.randn(2, 5, 8), finder, "test", grad=True)
    (found,) = finder.found.values()
    assert found.form == "written out"
    assert (found.op, found.probabilities, found.scores) == ("/einsum#1", "/softmax#0", "/einsum#0")
    assert found.heads == 2
    assert found.query.shape == found.key.shape == (2, 2, 5, 4)
    assert found.output == "out"
    assert [each.where for each in found.projections] == ["/matmul#0"]


def test_a_softmax_alone_is_no_attention() -> None:
    finder = Finder()
    run_once(NoAttention(), torch.randn(2, 2, 3, 3), finder, "test", grad=True)
    assert finder.found == {}


def test_a_module_that_runs_twice_is_found_once() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = Written()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.attention(self.attention(x))
            return out

    finder = Finder()
    run_once(Twice(), torch.randn(2, 5, 8), finder, "test", grad=True)
    assert [found.calls for found in finder.found.values()] == [2]
