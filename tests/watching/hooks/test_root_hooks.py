"""The hooks around a call of a watched model: which calls count, and as what."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import nethook


def followed(model, folder, body):
    with nethook.watch(model, to=folder / "run.db", budget=None) as watch:
        watch.be_silent()
        body(model)
        return dict(watch._session.clock.totals), watch._session.clock.calls.depth


def test_calls_inside_calls_are_one(tmp_path):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x, deep=True):
            return self(x, deep=False) if deep else self.fc(x)

    totals, depth = followed(Twice(), tmp_path, lambda model: model(torch.ones(1, 2)))
    assert (totals["forwards"], depth) == (1, 0)


def test_what_is_recomputed_in_a_backward_pass_is_no_call(tmp_path):
    def body(model):
        checkpoint(model, torch.ones(1, 2), use_reentrant=False).sum().backward()

    totals, _ = followed(nn.Linear(2, 2), tmp_path, body)
    assert (totals["forwards"], totals["backwards"]) == (1, 1)


def test_transforms_are_no_calls(tmp_path):
    def body(model):
        torch.func.vmap(model)(torch.ones(3, 2))

    totals, depth = followed(nn.Linear(2, 2), tmp_path, body)
    assert (totals["forwards"], depth) == (0, 0)


def test_a_call_that_raises_has_ended(tmp_path):
    def body(model):
        try:
            model(torch.ones(1, 3))
        except RuntimeError:
            model(torch.ones(1, 2))

    totals, depth = followed(nn.Linear(2, 2), tmp_path, body)
    assert (totals["forwards"], depth) == (2, 0)
