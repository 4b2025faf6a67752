"""What recorders may ask of the session, the session has."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.watching import protocols
from nethook.watching.protocols import OUTPUT_MARK, OutputMark, mark_node
from tests.watching.members import members, protocols_of, watched


@pytest.mark.parametrize("name", protocols_of(protocols))
def test_a_protocol_names_something(name):
    assert members(getattr(protocols, name))


def test_a_session_offers_what_recorders_may_ask_of_it(tmp_path):
    with watched(tmp_path) as session:
        wanted = ("Watching", "Events", "Rowed", "PointSession", "LossSession", "PassSession")
        for name in wanted:
            for member in members(getattr(protocols, name)):
                assert hasattr(session, member), (name, member)


def test_the_members_of_a_protocol_are_those_of_its_bases_too():
    assert {"row", "train", "pending", "numbers"} <= members(protocols.LossSession)
    assert "models" not in members(protocols.LossSession)


def test_a_node_is_marked_and_marks_are_made_once():
    marks: dict = {}
    out = nn.Linear(2, 2)(torch.ones(1, 2))
    mark_node(out.grad_fn, marks, ("", ()))
    first = out.grad_fn.metadata[OUTPUT_MARK]
    mark_node(out.grad_fn, marks, ("", ()))
    assert first == OutputMark("", ())
    assert out.grad_fn.metadata[OUTPUT_MARK] is first
    mark_node(None, marks, ("", ()))  # an output without a graph
    assert list(marks) == [("", ())]


def test_no_more_than_some_marks_are_kept():
    marks: dict = {}
    node = (torch.ones(1, requires_grad=True) * 2).grad_fn
    for number in range(300):
        mark_node(node, marks, (str(number), ()))
    assert len(marks) == 256
    assert node.metadata[OUTPUT_MARK].model == "299"
