"""Runs, written down: in order, without being changed by what comes later."""

import torch
from torch import nn

import nethook
from nethook.addresses.op_addresses import OpPattern
from nethook.addresses.tree import Tree
from nethook.interp.sweeping.recording import opaque_part, record


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, *, box=None):
        x = self.one(x)
        kept = x + 0
        x.zero_()
        return self.two(self.one(kept).relu())


def test_calls_in_their_order_and_outputs_as_they_were():
    model, x = Model(), torch.ones(1, 2)
    want = model.one(x)
    tree = Tree(model)
    recording = record(tree, lambda: model(x), [OpPattern("/relu")], modules={"", "one", "two"})
    calls = recording.calls
    assert list(calls) == ["", "one", "/relu#0", "two"]
    assert torch.equal(calls["one"].outputs[0], want)
    assert not calls["one"].once
    assert calls["two"].once
    assert calls["one"].ended[1] < calls["/relu#0"].ended[0] < calls["two"].began[0]
    assert calls["two"].ended[0] < calls[""].ended[0]
    assert torch.equal(recording.output, calls[""].outputs[0])
    assert not nethook.audit(model)


def test_objects_that_are_handed_on():
    assert opaque_part((torch.ones(1), [1, None, {"a": "b"}], slice(1))) == ""
    assert opaque_part([torch.ones(1), {"a": object()}]) == "object"
    model = Model()
    tree = Tree(model)
    recording = record(tree, lambda: model(torch.ones(1, 2), box=Tree), modules={"", "two"})
    assert recording.calls[""].given == "type"
    assert recording.calls["two"].given == recording.calls["two"].returned == ""
