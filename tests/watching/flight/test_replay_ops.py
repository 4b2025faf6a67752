"""The operation that made the first NaN, in a forward and in its backward."""

from __future__ import annotations

import torch
from torch import nn

from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.ops.watch import watch_ops
from nethook.watching.flight.replay_ops import (
    DATA,
    PARAMETERS,
    Finder,
    FoundNode,
    GradientFinder,
    SeenOp,
    op_of,
)

NAN, INF = float("nan"), float("inf")


def found(model: nn.Module, x: torch.Tensor):
    hooks = Attachment(Owner("test"))
    finder = Finder(x, list(model.parameters()))
    try:
        watch_ops(Tree(model), hooks, finder)
        finder.conclude(model(x))
    finally:
        hooks.remove()
    return finder.findings


class Log(nn.Module):
    def forward(self, x):
        return torch.log(x - 1) * 2


class Masked(nn.Module):
    def forward(self, x):
        return x.masked_fill(x > 0, -INF).softmax(1)


class Overwritten(nn.Module):
    def forward(self, x):
        bad = torch.log(-x)
        return torch.nan_to_num(bad) + 1


def test_the_operation_that_made_it_is_named():
    findings = found(Log(), torch.ones(1, 2))
    assert (findings.made.name, findings.met) == ("log", None)
    assert [op.name for op in findings.ops] == ["sub", "log", "mul"]


def test_infinities_that_the_script_wrote_are_no_fault_until_nan_is_made_of_them():
    findings = found(Masked(), torch.tensor([[1.0, -1.0]]))
    assert (findings.made, findings.met) == (None, None)
    findings = found(Masked(), torch.tensor([[1.0, 1.0]]))  # all are masked
    assert findings.made.name == "softmax"


def test_what_does_not_reach_the_output_is_not_blamed():
    findings = found(Overwritten(), torch.ones(1, 2))
    assert (findings.made, findings.met) == (None, None)


def test_what_the_batch_or_parameters_had_is_met_and_not_made():
    findings = found(nn.Linear(2, 1), torch.tensor([[NAN, 1.0]]))
    assert (findings.made, findings.met.name, findings.met_from) == (None, "linear", DATA)
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.fill_(INF)
    findings = found(model, torch.ones(1, 2))
    assert findings.met_from == PARAMETERS


def gradients(root: torch.Tensor) -> FoundNode | None:
    hooks = Attachment(Owner("test"))
    finder = GradientFinder(hooks.owner)
    try:
        finder.attach(root, hooks)
        root.backward()
    finally:
        hooks.remove()
    return finder.first


def test_the_node_that_makes_nan_of_finite_gradients():
    x = torch.zeros(2, requires_grad=True)
    first = gradients((x.sqrt() * 3).sum())
    assert first.node == "Sqrt"
    assert torch.isfinite(first.grads_in[0]).all()
    assert not torch.isfinite(first.grads_out[0]).all()


def test_finite_gradients_have_none():
    assert gradients((torch.ones(2, requires_grad=True) * 3).sum()) is None


def test_an_operation_is_found_by_the_nodes_that_it_made():
    ops = [
        SeenOp("a", "a", "", "", [], first_node=3, last_node=5),
        SeenOp("b", "b", "", "", [], first_node=5, last_node=5),  # made none
        SeenOp("c", "c", "", "", [], first_node=7, last_node=9),
    ]
    by_number = {number: op_of(FoundNode("n", number), ops) for number in range(2, 10)}
    assert {number: op and op.name for number, op in by_number.items()} == {
        2: None, 3: "a", 4: "a", 5: None, 6: None, 7: "c", 8: "c", 9: None,
    }  # fmt: skip
