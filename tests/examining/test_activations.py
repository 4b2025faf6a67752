"""The memory that a graph holds, read without running anything."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from nethook.examining import activations
from nethook.examining.activations import bytes_saved
from nethook.torch_private import storage_id
from nethook.torch_versions import release

ROWS, WIDTH = 50, 100
ONE = ROWS * WIDTH * 4


def weights(model: nn.Module) -> set[int]:
    return {storage_id(tensor.untyped_storage()) for tensor in model.parameters()}


def test_what_backward_needs_counts_once():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    loss = model(torch.randn(ROWS, WIDTH)).pow(2).mean()
    assert bytes_saved([loss], weights(model)) == 3 * ONE  # inputs of both layers, of the square
    assert bytes_saved([loss, loss], weights(model)) == 3 * ONE
    with_weights = bytes_saved([loss], set())
    assert with_weights == 3 * ONE + WIDTH * WIDTH * 4  # the first one's is not needed


def test_hooks_of_the_script_do_not_run():
    unpacked = []

    def unpack(kept):
        unpacked.append(kept)
        return kept

    x = torch.randn(ROWS, WIDTH, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        loss = x.pow(2).mean()
    assert bytes_saved([loss], set()) == 0
    assert unpacked == []
    loss.backward()
    assert unpacked


def test_a_checkpoint_is_not_computed_again():
    layer, calls = nn.Linear(WIDTH, WIDTH), []

    def run(x):
        calls.append(1)
        return layer(x).relu()

    x = torch.randn(ROWS, WIDTH, requires_grad=True)
    loss = checkpoint(run, x, use_reentrant=False).mean()
    bytes_saved([loss], weights(layer))
    assert calls == [1]


def test_a_large_graph_is_guessed(monkeypatch):
    x = torch.randn(ROWS, WIDTH, requires_grad=True)
    y = x
    for _ in range(20):
        y = y * 1.5
        y = y.sin()
    whole = bytes_saved([y.sum()], set())
    monkeypatch.setattr(activations, "MOST_NODES", 10)
    guessed = bytes_saved([y.sum()], set())
    assert 0 < guessed < whole


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


@pytest.mark.skipif(release(torch.__version__) < release("2.10"), reason="cannot be told before")
def test_a_function_that_is_written_in_python():
    x = torch.randn(ROWS, WIDTH, requires_grad=True)
    assert bytes_saved([Square.apply(x).sum()], set()) == ONE


def test_what_was_written_to_since_is_left_out():
    x = torch.randn(ROWS, WIDTH, requires_grad=True)
    y = x + 2
    loss = Square.apply(y).sum() + y.sin().sum()
    with torch.no_grad():
        y.add_(1)
    assert bytes_saved([loss], set()) == 0
