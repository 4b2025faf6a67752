"""A parameter that no model lists is found where it lies."""

from __future__ import annotations

import inspect

import torch
from torch import nn

from nethook.watching.facts.holders import Holder, holders


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.registered = nn.Linear(2, 2)
        self.blocks = [nn.Linear(2, 2)]
        self.heads = {"a": {"b": (nn.GRUCell(2, 2),)}}
        self.scales = [nn.Parameter(torch.ones(2))]
        self.plain = [torch.zeros(2, requires_grad=True)]
        hidden = nn.Conv1d(2, 2, 1)
        self.function = lambda x: hidden(x)
        object.__setattr__(self, "teacher", nn.Bilinear(2, 2, 2))


def found(model, tensor, name="") -> Holder | None:
    parameters = {id(tensor)} if isinstance(tensor, nn.Parameter) else set()
    return holders({name: model}, {id(tensor)}, parameters).get(id(tensor))


def line(text: str) -> str:
    lines, first = inspect.getsourcelines(Model)
    return f"test_holders.py:{first + next(n for n, each in enumerate(lines) if text in each)}"


def test_containers_of_every_kind():
    model = Model()
    block = found(model, model.blocks[0].weight)
    assert block == Holder("list", "blocks", "Linear", line("self.blocks"))
    head = found(model, model.heads["a"]["b"][0].bias_hh, "net")
    assert (head.how, head.where, head.kind) == ("dict", "net.heads", "GRUCell")
    scale = found(model, model.scales[0])
    assert (scale.how, scale.where, scale.kind) == ("list", "scales", "Parameter")
    assert found(model, model.plain[0]).kind == "Tensor"


def test_functions_and_attributes_past_the_registration():
    model = Model()
    (hidden,) = (cell.cell_contents for cell in model.function.__closure__)
    assert found(model, hidden.weight).how == "function"
    assert found(model, model.teacher.weight).how == "attribute"


def test_a_container_of_a_part():
    outer = nn.Sequential(nn.ReLU(), Model())
    assert found(outer, outer[1].blocks[0].weight).where == "1.blocks"


def test_another_network_and_none():
    model, other = Model(), nn.Sequential(nn.Sequential(nn.Linear(3, 3)))
    other.eval()
    holder = found(model, other[0][0].weight)
    assert (holder.how, holder.where, holder.kind) == ("module", "Sequential", "Sequential")
    assert not holder.training
    assert found(model, nn.Parameter(torch.ones(1))) is None
    assert found(model, torch.ones(1, requires_grad=True)) is None


def test_containers_that_hold_themselves_end():
    model = Model()
    model.round = [model.blocks]
    model.round.append(model.round)
    assert found(model, model.blocks[0].weight).where == "blocks"
