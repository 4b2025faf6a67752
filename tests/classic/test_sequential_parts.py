"""Running a part of a Sequential."""

import pytest
import torch
from torch import nn

import nethook
from nethook import InstrumentedModel


@pytest.fixture
def sequential():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.Tanh())


@pytest.mark.parametrize("direct", [False, True], ids=["through the wrapper", "directly"])
def test_a_sequential_is_run_in_part(sequential, direct):
    inst, x = InstrumentedModel(sequential), torch.randn(2, 3)
    run = inst.model if direct else inst
    whole = sequential(x)
    assert torch.equal(run(x), whole)
    assert torch.equal(run(x, layer="2"), sequential[2](x))
    assert torch.equal(run(x, layer=2), sequential[2](x))
    assert torch.equal(run(x, first_layer="1", last_layer="2"), sequential[1:3](x))
    assert torch.equal(run(x, first_layer="2"), sequential[2:](x))
    assert torch.equal(run(x, last_layer="1"), sequential[:2](x))
    with pytest.raises(AssertionError, match=r"^7 not found$"):
        run(x, layer="7")
    with pytest.raises(AssertionError, match="not both"):
        run(x, layer="1", first_layer="1")
    for first, last in [(2, 1), ("3", "0")]:
        with pytest.raises(ValueError, match=rf"^Layer {last} comes before {first}$"):
            run(x, first_layer=first, last_layer=last)
    assert torch.equal(run(x), whole)


def test_all_children_are_back_after_an_error(sequential):
    inst = InstrumentedModel(sequential)
    names = list(sequential._modules)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        inst.model(torch.zeros(2, 5), layer="2")
    assert list(sequential._modules) == names
    with pytest.raises(AssertionError, match="not found"):
        inst.model(torch.zeros(2, 3), layer="9")
    assert list(sequential._modules) == names


def test_a_sequential_that_runs_itself_in_part_finds_all_its_children(sequential):
    class Again(nn.Module):
        def forward(self, x):
            return inner.model(x, layer="0") if x.numel() > 3 else x

    inner = InstrumentedModel(sequential)
    sequential.append(Again())
    x = torch.randn(2, 3)
    assert torch.equal(inner.model(x, layer="4"), sequential[0](x))
    assert len(sequential) == 5


def test_no_forward_is_replaced_and_closing_ends_it(sequential):
    inst = InstrumentedModel(sequential)
    assert "forward" not in vars(sequential)
    inst.close()
    assert list(nethook.audit(sequential)) == []
    with pytest.raises(TypeError, match="layer"):
        sequential(torch.zeros(2, 3), layer="2")


def test_a_sequential_with_a_forward_of_its_own_is_left_alone():
    class Own(nn.Sequential):
        def forward(self, x, layer=None):
            return layer

    assert InstrumentedModel(Own(nn.ReLU()))(torch.zeros(1), layer="mine") == "mine"
