"""Parameters that a lazy module has yet to make."""

import torch
from torch import nn

from nethook.addresses.lazy_parameters import first_unmade


def test_a_usual_model_has_none():
    assert first_unmade(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))) is None
    assert first_unmade(nn.ReLU()) is None


def test_the_first_one_is_named_by_its_address():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.LazyLinear(4), nn.LazyConv2d(1, 1))
    assert first_unmade(model) == "2.weight"
    assert first_unmade(nn.LazyLinear(4, bias=False)) == "weight"


def test_a_forward_makes_them():
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyLinear(1))
    model[0](torch.ones(1, 3))
    assert first_unmade(model) == "1.weight"
    model(torch.ones(1, 3))
    assert first_unmade(model) is None


def test_a_buffer_that_is_yet_to_be_made_is_not_a_parameter():
    norm = nn.LazyBatchNorm1d(affine=False)
    assert isinstance(norm.running_mean, nn.parameter.UninitializedBuffer)
    assert first_unmade(norm) is None
