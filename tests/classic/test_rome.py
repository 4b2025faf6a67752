"""The other order: the input is kept before the edit, and an edit sees output and layer alone."""

import pytest
import torch
from torch import nn

import nethook
from nethook.classic import rome


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU())


@pytest.mark.parametrize(
    ("trace", "kept"), [(rome.Trace, 1.0), (nethook.Trace, 0.0)], ids=["rome", "nethook"]
)
def test_which_comes_first_input_or_edit(model, trace, kept):
    x = torch.ones(2, 3)

    def edit(output):
        x.zero_()

    with torch.no_grad(), trace(model, "0", retain_input=True, edit_output=edit) as ret:
        model(x)
    assert torch.equal(ret.input, torch.full((2, 3), kept))


def test_an_edit_is_offered_output_and_layer_alone(model):
    seen = []

    def edit(**offered):
        seen.append(sorted(offered))

    with rome.TraceDict(model, ["0"], edit_output=edit) as ret:
        y = model(torch.ones(2, 3))
    assert seen == [["layer", "output"]]
    assert isinstance(ret["0"], rome.Trace)
    assert torch.equal(y, model[1](ret["0"].output))


def test_it_stands_in_for_the_copied_file():
    for name in rome.__all__:
        assert getattr(rome, name).__doc__
    assert rome.StopForward is nethook.StopForward
    assert rome.get_parameter is nethook.get_parameter
    assert nethook.classic.rome is rome


def test_options_reach_the_tensors_inside_containers():
    """Old: options were not passed down, so nothing inside a tuple was detached."""
    x = torch.ones(2, requires_grad=True)
    (inner,), listed = rome.recursive_copy(((x * 2,), [x * 3]), detach=True, clone=True)
    assert not inner.requires_grad
    assert not listed[0].requires_grad
