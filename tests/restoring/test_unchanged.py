"""Running a model once and leaving it as it was; `test_sites` does so for the whole zoo."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from nethook.restoring.unchanged import unchanged
from nethook.torch_private import first_element


def test_a_buffer_that_was_not_written_keeps_its_memory_and_one_that_was_its_value() -> None:
    model = nn.BatchNorm1d(3)
    mean, where = model.running_mean, first_element(model.running_var)
    with unchanged(model):
        model.running_mean.add_(1)
    assert model.running_mean is mean
    assert mean.tolist() == [0.0, 0.0, 0.0]
    assert first_element(model.running_var) == where


def test_a_graph_that_saved_a_buffer_can_still_be_differentiated() -> None:
    """The value comes back bit for bit, so torch need not take it for changed."""
    model = nn.Module()
    model.register_buffer("scale", torch.full((2,), 3.0))
    x = torch.ones(2, requires_grad=True)
    loss = (x * model.scale).sum()
    with unchanged(model):
        model.scale.mul_(5)
    loss.backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_buffer_shared_with_numpy_follows_its_array_afterwards() -> None:
    model, array = nn.Module(), np.zeros(2, dtype=np.float32)
    model.register_buffer("shared", torch.from_numpy(array))
    with unchanged(model):
        model.shared.add_(1)
    assert array.tolist() == [0.0, 0.0]
    array[:] = 7
    assert model.shared.tolist() == [7.0, 7.0]


def test_a_buffer_whose_shape_changed_comes_back() -> None:
    model = nn.Module()
    model.register_buffer("cache", torch.arange(4.0))
    with unchanged(model):
        model.cache.resize_(2, 3)
    assert model.cache.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_weights_computed_here_do_not_stay_in_the_cache() -> None:
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    with parametrize.cached():
        with unchanged(layer), torch.no_grad():
            layer(torch.ones(1, 3))
        layer(torch.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original0.grad is not None


def test_evaluation_is_for_the_block_alone_and_module_by_module() -> None:
    model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2))
    model[1].eval()
    with unchanged(model, evaluation=True):
        assert not any(module.training for module in model.modules())
    assert [module.training for module in model.modules()] == [True, True, False]
