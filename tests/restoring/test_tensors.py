"""Tensors come back in their own memory, and a large model is not copied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from nethook.restoring import tensors
from nethook.restoring.unchanged import unchanged
from nethook.torch_private import first_element


def test_weights_are_copied_only_when_they_are_written() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    places = [first_element(each) for each in model.parameters()]
    with unchanged(model), torch.no_grad():
        model(torch.ones(2, 64))
        assert [first_element(each) for each in model.parameters()] == places
        model[0].weight.mul_(2)
    assert [first_element(each) for each in model.parameters()] == places
    with torch.no_grad():
        model[0].weight.mul_(2)  # nobody else holds it any more: nothing is copied now
    assert [first_element(each) for each in model.parameters()] == places


def test_a_large_model_in_memory_of_others_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "MOST_COPIED", 16)  # bytes: one of the two fits
    model, arrays = nn.Module(), [np.zeros(3, np.float32), np.zeros(3, np.float32)]
    model.one, model.two = (nn.Parameter(torch.from_numpy(each)) for each in arrays)
    with unchanged(model), torch.no_grad():
        model.one.add_(1)
    assert model.one.tolist() == [0, 0, 0]
    lost = r"wrote to the memory of Module\.two \(0 MB\), and it stays written"
    with pytest.warns(UserWarning, match=lost), unchanged(model), torch.no_grad():
        model.two.add_(1)
    assert model.two.tolist() == [1, 1, 1]
    with unchanged(model):
        model.two.data = torch.zeros(2)  # other memory: its own was not written
    assert model.two.tolist() == [1, 1, 1]
    arrays[1][:] = 7
    assert model.two.tolist() == [7, 7, 7]


def test_weights_of_one_memory_come_back() -> None:
    model, memory = nn.Module(), torch.arange(6.0)
    model.one, model.two = nn.Parameter(memory[:3]), nn.Parameter(memory[3:])
    with unchanged(model), torch.no_grad():
        model.two.add_(1)
        model.one.data = torch.zeros(3)
    assert memory.tolist() == [0, 1, 2, 3, 4, 5]
    memory.add_(1)
    assert model.one.tolist() + model.two.tolist() == [1, 2, 3, 4, 5, 6]


def test_memory_that_may_only_be_read_is_not_touched() -> None:
    """Writing the same bits would be the end of the process."""
    array = np.frombuffer(b"\0" * 16, dtype=np.float32)
    with pytest.warns(UserWarning, match="not writable"):
        x = torch.from_numpy(array)
    with unchanged(nn.Identity(), x):
        x + 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex128])
@given(data=st.data())
def test_any_strides_come_back(dtype: torch.dtype, data: st.DataObject) -> None:
    whole = torch.arange(60).reshape(5, 3, 4).to(dtype)
    start, step = data.draw(st.integers(0, 4)), data.draw(st.integers(1, 3))
    x = whole[start::step].transpose(0, data.draw(st.integers(0, 2)))
    if data.draw(st.booleans()):
        x = x.unsqueeze(1).expand(-1, 4, -1, -1)
    expected, version = whole.clone(), whole._version
    with unchanged(nn.Identity(), x):
        way = data.draw(st.sampled_from(["all", "version", "data", "none"]))
        if way == "all":
            whole.fill_(1)
        elif way == "data":
            whole.data[start] = 0
        elif way == "version":
            whole.add_(0) if dtype is not torch.bool else whole.logical_or_(whole)
    written = torch.zeros_like(whole, dtype=torch.bool)
    written[start::step] = True
    assert torch.equal(whole[written], expected[written])
    assert whole._version == version


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x.imag, lambda x: x.real])
def test_what_conjugate_views_show_comes_back(part: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Their memory holds other numbers than they show."""
    model, x = nn.Module(), torch.randn(3, dtype=torch.complex64)
    model.register_buffer("shown", part(x.conj()))
    before = x.clone()
    with unchanged(model):
        pass
    assert torch.equal(x, before)
    with unchanged(model):
        model.shown.fill_(7)
    with unchanged(model):
        model.shown.data.fill_(7)  # no version tells
    assert torch.equal(x, before)


def test_inference_tensors_and_modes() -> None:
    with torch.inference_mode():
        model, x = nn.BatchNorm1d(2), torch.randn(4, 2)
        with unchanged(model, x):
            model(x)
            x.zero_()
        assert x.any()
        assert not model.running_mean.any()
    with unchanged(model, x), torch.inference_mode():
        model(x)
        x.zero_()
    assert x.any()
    assert not model.running_mean.any()


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_sparse_and_quantised_values_come_back() -> None:
    model = nn.Module()
    model.sparse = torch.eye(3).to_sparse()
    model.quantised = torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8)
    with unchanged(model):
        model.sparse.mul_(2)
        model.quantised.fill_(3)
    assert torch.equal(model.sparse.to_dense(), torch.eye(3))
    assert model.quantised.dequantize().tolist() == [1, 1, 1]
