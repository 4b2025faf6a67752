"""A forward with shapes alone: the same shapes as torch gives, no memory, nothing touched."""

from __future__ import annotations

import copy
import copyreg
import warnings

import pytest
import torch
from torch import nn

from nethook.hooks.layouts.fake import fake_copy, is_fake


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())


def test_shapes_are_torchs_and_nothing_is_touched():
    model, x = network(), torch.randn(2, 3, 8, 8)
    calls: list[int] = []
    model.register_forward_hook(lambda *_: calls.append(1))
    before = {name: (value.clone(), value._version) for name, value in model.state_dict().items()}
    with fake_copy(model, (x, {"again": [x]})) as (twin, (given, more)):
        out = twin(given)
        assert is_fake(out)
        assert is_fake(more["again"][0])
        assert all(is_fake(each) for each in twin.parameters())
    assert calls == []
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name][0])
        assert value._version == before[name][1]
    assert out.shape == model(x).shape
    assert not is_fake(x)
    assert torch.zeros(1) + 1 == 1  # the mode is left


def test_ties_are_kept():
    model = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    model[1].weight = model[0].weight
    with fake_copy(model, ()) as (twin, _):
        assert twin[1].weight is twin[0].weight


def test_a_forward_that_looks_at_values_is_an_error_and_the_mode_is_left():
    class Looks(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError), fake_copy(Looks(), torch.ones(2)) as (twin, x):
        twin(x)
    assert float(torch.ones(2).sum()) == 2


def test_what_a_model_holds_beside_its_state_takes_part_and_hooks_and_warnings_do_not():
    kept = torch.ones(3)

    class Odd(nn.Module):
        def forward(self, x):
            warnings.warn("said when the forward that counts runs", stacklevel=1)
            return x + kept  # a tensor that no copy of the model has

    model = Odd()
    calls: list[int] = []
    model.register_forward_pre_hook(lambda *_: calls.append(1))
    with fake_copy(model, torch.ones(2, 3)) as (twin, x):
        assert twin(x).shape == (2, 3)
        assert is_fake(torch.ones(2))  # inside the block everything is
    assert calls == []


def test_a_generator_is_refused_before_torch_reads_a_state_without_memory():
    model = torch.nn.Linear(2, 2)
    model.noise = [torch.Generator()]
    before = dict(copyreg.dispatch_table)
    with pytest.raises(RuntimeError, match="Generator has a state"), fake_copy(model, None):
        pass
    assert copyreg.dispatch_table == before
    assert copy.deepcopy(model).noise[0].initial_seed() == model.noise[0].initial_seed()
