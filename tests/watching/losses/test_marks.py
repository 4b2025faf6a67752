"""Marks on the nodes that made outputs: each is made once, and only so many are kept."""

from __future__ import annotations

import torch
from torch import nn

from nethook.watching.losses.marks import MOST_MARKS, OUTPUT_MARK, Marks, OutputMark


def test_a_node_is_marked_and_marks_are_made_once():
    marks = Marks()
    out = nn.Linear(2, 2)(torch.ones(1, 2))
    marks.put(out.grad_fn, "", ())
    first = out.grad_fn.metadata[OUTPUT_MARK]
    marks.put(out.grad_fn, "", ())
    assert first == OutputMark("", ())
    assert out.grad_fn.metadata[OUTPUT_MARK] is first
    marks.put(None, "", ())  # an output without a graph
    assert len(marks) == 1


def test_no_more_than_some_marks_are_kept():
    marks = Marks()
    node = (torch.ones(1, requires_grad=True) * 2).grad_fn
    for number in range(MOST_MARKS + 44):
        marks.put(node, str(number), ())
    assert len(marks) == MOST_MARKS
    assert node.metadata[OUTPUT_MARK].model == "299"
