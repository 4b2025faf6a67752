"""Scores of written-out attention, done again, are those that the model computes itself."""

from __future__ import annotations

import pytest
import torch

import nethook
from nethook.addresses.inputs import Inputs
from nethook.interp.attention.heads import heads
from nethook.interp.estimates.points import Point, attach
from nethook.interp.estimates.replay import written_scores
from nethook.interp.estimates.softmax import WrittenSoftmaxEffect
from tests.interp import families


@pytest.mark.parametrize("name", ["bloom", "gemma2", "gpt2_eager"])
@pytest.mark.parametrize("part", ["q", "k"])
def test_probabilities_of_other_queries_and_keys(name: str, part: str) -> None:
    """The model itself runs with another q or k, and its softmax is read."""
    model, inputs = families.built(name)
    row = heads(model, inputs)[1]
    point = Point(row.address, part, row)  # type: ignore[arg-type]
    made: dict[str, torch.Tensor] = {}

    def change(_: Point, value: torch.Tensor) -> torch.Tensor:
        made["new"] = value.flip(2) * 2 + 0.1
        return made["new"]

    read = {row.probabilities: lambda value: made.update(probabilities=value)}
    with torch.no_grad(), nethook.edit(model, outputs=read), attach(model, [point], change):
        model(**inputs)
    scores = written_scores(model, Inputs((), inputs), [row])[row.address]
    new = {"q": "query", "k": "key"}[part]
    with torch.no_grad():
        again = scores.again(**{new: made["new"]}).softmax(-1)
        same = scores.again().softmax(-1)
    torch.testing.assert_close(again, made["probabilities"])
    assert not torch.allclose(again, same)
    assert scores.value is not None
    assert scores.value.shape == (2, 4, 7, 8)


@pytest.mark.parametrize("name", ["bloom", "gemma2"])
def test_one_key_at_a_time_by_the_closed_form(name: str) -> None:
    model, inputs = families.built(name)
    row = heads(model, inputs)[1]
    with torch.no_grad():
        scores = written_scores(model, Inputs((), inputs), [row])[row.address]
        generator = torch.Generator().manual_seed(0)
        grad = torch.randn(2, 4, 7, 8, generator=generator)
        key = torch.randn(2, 4, 7, 8, generator=generator)
        effect = WrittenSoftmaxEffect(scores, grad)
        found = effect.of_each_key(key)
        base = scores.again().double()
        every = scores.again(key=key).double()
        for position in range(7):
            one = base.clone()
            one[..., position] = every[..., position]
            expected = ((one.softmax(-1) - base.softmax(-1)) * effect.grad).sum((-2, -1))
            torch.testing.assert_close(found[..., position], expected)
