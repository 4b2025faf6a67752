"""Parameters: written, and brought back bit for bit."""

import numpy as np
import pytest
import torch
from torch import nn

import nethook
from nethook import edits
from nethook.errors import EditError, NoSuchSiteError


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))


def test_set_parameter_writes_into_the_same_tensor(model):
    weight = model[0].weight
    nethook.set_parameter(model, "0.weight", torch.eye(3, dtype=torch.float64))
    assert model[0].weight is weight
    assert torch.equal(weight.detach(), torch.eye(3))
    nethook.set_parameter(model, "1.running_mean", 2)
    assert torch.equal(model[1].running_mean, torch.full((3,), 2.0))


def test_set_parameter_refuses_another_shape_and_another_name(model):
    with pytest.raises(EditError, match=r"the shape of '0.weight', \(3, 3\); got \(2,\)"):
        nethook.set_parameter(model, "0.weight", torch.ones(2))
    with pytest.raises(NoSuchSiteError, match=r"0\.weigth"):
        nethook.set_parameter(model, "0.weigth", 0)


def snapshot(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def changes(model, before):
    return [
        name for name, value in model.state_dict().items() if not torch.equal(value, before[name])
    ]


def test_everything_comes_back(model):
    before, pointers = snapshot(model), [p.data_ptr() for p in model.parameters()]
    with nethook.preserve(model):
        model(torch.randn(4, 3)).sum().backward()
        torch.optim.SGD(model.parameters(), 1.0).step()
        assert changes(model, before)
    assert changes(model, before) == []
    assert len(pointers) == 6


def test_only_what_was_named_comes_back(model):
    before = snapshot(model)
    with nethook.preserve(model, "0", "2.bias"):
        for parameter in model.parameters():
            parameter.data.add_(1)
    assert changes(model, before) == ["1.weight", "1.bias", "2.weight"]


def test_it_comes_back_after_an_exception(model):
    before = snapshot(model)
    with pytest.raises(ZeroDivisionError), nethook.preserve(model):
        model[0].weight.data.zero_()
        raise ZeroDivisionError
    assert changes(model, before) == []


def test_a_replaced_parameter_comes_back_as_the_object_it_was(model):
    weight, mean = model[0].weight, model[1].running_mean
    with nethook.preserve(model):
        model[0].weight = nn.Parameter(torch.zeros(5))
        model[1].running_mean = torch.zeros(1)
    assert model[0].weight is weight
    assert model[1].running_mean is mean


def test_a_parameter_that_got_other_data_comes_back(model):
    before = snapshot(model)
    with nethook.preserve(model):
        model.double()
        model[0].weight.data = torch.zeros(7)
    assert changes(model, before) == []
    assert model[0].weight.dtype == torch.float32


def test_tied_weights_stay_tied(model):
    model[2] = nn.Linear(3, 3)
    model[2].weight = model[0].weight
    with nethook.preserve(model):
        model[2].weight = nn.Parameter(torch.zeros(3, 3))
    assert model[2].weight is model[0].weight


def test_a_graph_from_before_can_still_be_differentiated(model):
    model.eval()
    x = torch.randn(4, 3, requires_grad=True)
    loss = model(x).sum()
    (expected,) = torch.autograd.grad(loss, x, retain_graph=True)
    with nethook.preserve(model):
        model[0].weight.data.mul_(2)
    loss.backward()
    assert torch.equal(x.grad, expected)


def test_what_was_not_written_is_not_copied(model):
    address = torch._C._data_address(model[0].weight)
    with nethook.preserve(model):
        pass
    assert torch._C._data_address(model[0].weight) == address


def test_a_numpy_array_goes_on_sharing_the_memory(model):
    array = model[0].weight.detach().numpy()
    before = array.copy()
    with nethook.preserve(model):
        model[0].weight.data.add_(1)
        assert np.array_equal(array, before + 1)
    assert np.array_equal(array, before)


def test_scopes_nest(model):
    before = snapshot(model)
    with nethook.preserve(model):
        model[0].weight.data.add_(1)
        middle = snapshot(model)
        with nethook.preserve(model, "0.weight"):
            model[0].weight.data.add_(1)
        assert changes(model, middle) == []
    assert changes(model, before) == []


def test_a_parameter_is_changed_for_a_scope_and_comes_back_in_its_own_memory(model):
    weight, pointer = model[0].weight, model[0].weight.data_ptr()
    before = weight.detach().clone()
    with nethook.edit(model, params={"0.weight": edits.scale(2), "*.bias": edits.zero()}):
        assert model[0].weight is weight
        assert torch.equal(weight.detach(), before * 2)
        assert not model[2].bias.any()
    assert torch.equal(weight.detach(), before)
    assert weight.data_ptr() == pointer


def test_a_low_rank_change_means_the_same_however_a_layer_keeps_its_weight():
    from transformers.pytorch_utils import Conv1D

    torch.manual_seed(0)
    left, right, x = torch.randn(5, 2), torch.randn(2, 3), torch.randn(4, 3)
    linear, conv1d = nn.Linear(3, 5), Conv1D(5, 3)
    for model in (linear, conv1d):
        plain = model(x)
        with nethook.edit(model, params={"weight": edits.add_low_rank(left, right)}):
            torch.testing.assert_close(model(x), plain + x @ right.T @ left.T)
        assert torch.equal(model(x), plain)


def test_a_low_rank_change_of_a_convolution_and_an_embedding():
    u, v = torch.randn(4), torch.randn(3 * 2 * 2)
    conv = nn.Conv2d(3, 4, 2)
    before = conv.weight.detach().clone()
    with nethook.edit(conv, params={"weight": edits.add_low_rank(u, v)}):
        torch.testing.assert_close(
            conv.weight.detach(), before + torch.outer(u, v).reshape(4, 3, 2, 2)
        )
    table = nn.Embedding(7, 4)
    rows = table.weight.detach().clone()
    token = torch.nn.functional.one_hot(torch.tensor(3), 7).float()
    with nethook.edit(table, params={"weight": edits.add_low_rank(u, token)}):
        torch.testing.assert_close(table.weight[3].detach(), rows[3] + u)
        torch.testing.assert_close(table.weight[4].detach(), rows[4])


def test_what_does_not_fit_leaves_nothing_changed(model):
    before = snapshot(model)
    with pytest.raises(EditError, match=r"3 outputs and 3 inputs"):
        nethook.edit(
            model,
            params={
                "0.bias": edits.zero(),
                "0.weight": edits.add_low_rank(torch.ones(2), torch.ones(3)),
            },
        ).attach()
    with pytest.raises(EditError, match=r"returned \(3,\) for '0.weight'"):
        nethook.edit(model, params={"0.weight": lambda w: w[0]}).attach()
    assert changes(model, before) == []


def test_edits_of_one_parameter_apply_in_order_and_functions_work(model):
    before = model[0].weight.detach().clone()
    with nethook.edit(
        model, params={"0.weight": [edits.add(1), lambda w: w.mul_(2), edits.mask(torch.eye(3))]}
    ):
        torch.testing.assert_close(model[0].weight.detach(), (before + 1) * 2 * torch.eye(3))
    assert torch.equal(model[0].weight.detach(), before)
