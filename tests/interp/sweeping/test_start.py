"""Every run begins as the first one did: random states, buffers, inputs."""

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.tree import Tree
from nethook.interp.sweeping.start import SameStart


class Draws(nn.Module):
    def forward(self, x):
        return x + torch.rand(())


class WritesInputs(nn.Module):
    def forward(self, x):
        return x.add_(1)


def started(model, x):
    start, inputs = SameStart(Tree(model)), Inputs((x,))
    with torch.no_grad(), start.observed(inputs):
        first = model(x)
    return start, first


def test_a_plain_model_changes_nothing():
    start, _ = started(nn.Linear(2, 2), torch.ones(3, 2))
    assert (start.draws, start.writes_inputs, start.buffer) == (False, False, "")
    inputs = Inputs((torch.ones(1),))
    assert start.fresh(inputs) is inputs


def test_the_same_numbers_are_drawn_again():
    model = Draws()
    start, first = started(model, torch.zeros(2))
    assert start.draws
    start.again()
    assert torch.equal(model(torch.zeros(2)), first)


def test_buffers_have_the_values_that_they_had():
    model = nn.BatchNorm1d(2)
    start, _ = started(model, torch.randn(4, 2))
    assert start.buffer == "running_mean"
    start.again()
    assert torch.equal(model.running_mean, torch.zeros(2))


def test_inputs_that_are_written_to_are_copied():
    start, _ = started(WritesInputs(), torch.zeros(2))
    assert start.writes_inputs
    kept = torch.zeros(2)
    WritesInputs()(*start.fresh(Inputs((kept,))).args)
    assert torch.equal(kept, torch.zeros(2))
