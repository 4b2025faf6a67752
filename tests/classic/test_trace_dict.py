"""TraceDict: several layers, options by layer, all or nothing."""

import inspect
from collections import OrderedDict

import pytest
import torch
from torch import nn

import nethook
from nethook import Trace, TraceDict


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


@pytest.fixture
def x():
    return torch.randn(5, 3, generator=torch.Generator().manual_seed(1))


def test_the_signature_is_that_of_trace_with_layers(model):
    names = list(inspect.signature(TraceDict).parameters)
    assert names[:2] == ["module", "layers"]
    assert names[2:9] == list(inspect.signature(Trace).parameters)[2:9]


def test_it_is_an_ordered_dict_of_traces(model, x):
    with TraceDict(model, ["2", "0", "2"]) as ret:
        y = model(x)
    assert isinstance(ret, OrderedDict)
    assert list(ret) == ["2", "0"]
    assert ret["2"].output is y
    assert isinstance(ret["0"], Trace)
    assert list(nethook.audit(model)) == []


def test_one_wrong_name_leaves_no_hook(model):
    """Old: LookupError, and the hooks already set stayed for ever."""
    with pytest.raises(LookupError, match="'7'"):
        TraceDict(model, ["0", "1", "7"])
    assert list(nethook.audit(model)) == []


def test_without_layers_every_leaf_is_traced(model, x):
    """Old: TypeError."""
    with TraceDict(model) as ret:
        model(x)
    assert list(ret) == ["0", "1", "2"]
    assert [trace.output.shape[1] for trace in ret.values()] == [4, 4, 2]


def test_no_layers_are_no_traces(model, x):
    with TraceDict(model, []) as ret:
        model(x)
    assert len(ret) == 0


def test_one_name_is_one_layer(model, x):
    with TraceDict(model, "0") as ret:
        model(x)
    assert list(ret) == ["0"]


def test_stop_is_at_the_layer_listed_last(model, x):
    with TraceDict(model, ["2", "0", "2"], stop=True) as ret:
        model(x)
    assert ret["0"].output.shape == (5, 4)
    assert not hasattr(ret["2"], "output")
    assert [trace.stop for trace in ret.values()] == [False, True]


def test_stop_that_is_never_reached(model):
    """Old: TypeError, issubclass() arg 1 must be a class."""
    with TraceDict(model, ["0"], stop=True):
        pass


def test_each_option_may_be_a_dict_by_layer(model, x):
    edits = {"2": lambda output: output * 0}
    with TraceDict(
        model,
        ["0", "1", "2"],
        retain_output={"0": True, "2": True},
        retain_input={"1": True},
        detach={"0": True},
        clone={"2": True},
        retain_grad={},
        edit_output=edits,
    ) as ret:
        y = model(x)
    assert torch.equal(y, torch.zeros(5, 2))
    assert not ret["0"].output.requires_grad
    assert ret["2"].output.requires_grad
    assert not hasattr(ret["1"], "output")
    assert torch.equal(ret["1"].input, ret["0"].output)


def test_one_edit_function_for_all_is_told_the_layer(model, x):
    seen = []

    def edit(output, layer):
        seen.append(layer)
        return output

    with TraceDict(model, ["0", "2"], edit_output=edit):
        model(x)
    assert seen == ["0", "2"]


def test_close_takes_all_hooks_off(model, x):
    ret = TraceDict(model, ["0", "2"], calls="all")
    model(x)
    model(x)
    ret.close()
    model(x)
    assert ret["0"].called == 2
    assert len(ret["2"].calls) == 2
    assert list(nethook.audit(model)) == []


def test_retain_grad_for_several_layers(model, x):
    with TraceDict(model, ["0", "1", "2"], retain_grad=True) as ret:
        model(x).sum().backward()
    assert [trace.output.grad.shape[1] for trace in ret.values()] == [4, 4, 2]
