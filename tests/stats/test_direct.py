"""The kernel asks tensors without Python, and hears what Python would say."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.stats import direct, native
from tests.stats.test_guard import DENSE, OTHERS

pytestmark = [
    pytest.mark.skipif(native.functions is None, reason="the native kernel was not built here"),
    pytest.mark.filterwarnings("ignore:.*quantize_per_:UserWarning"),
]

TYPES = tuple(native.CODES)


@pytest.fixture
def kernel():
    yield native.functions
    direct.learn(native.functions, TYPES)


def both(kernel, tensor):
    """What the short way and the long way say of a tensor."""
    kernel.ask_directly(True)
    short = kernel.describe(tensor)
    kernel.ask_directly(False)
    long = kernel.describe(tensor)
    kernel.ask_directly(True)
    return short, long


def test_this_torch_can_be_asked_directly(kernel):
    assert direct.learn(kernel, TYPES)


@pytest.mark.parametrize("name", DENSE)
def test_dense_tensors_are_described_alike(kernel, name):
    tensor = DENSE[name]
    short, long = both(kernel, tensor)
    if long is not None and tensor.numel() == 0:  # then the address means nothing
        short, long = (short[0], *short[2:]), (long[0], *long[2:])
    assert short == long


@pytest.mark.parametrize("name", OTHERS)
def test_no_other_tensor_is_described(kernel, name, capfd):
    assert both(kernel, OTHERS[name][0]) == (None, None)
    assert capfd.readouterr().err == ""


def test_wrappers_of_transforms_are_not_described(kernel, capfd):
    seen = []

    def look(x):
        seen.append(both(kernel, x))
        return (x * x).sum()

    x = torch.randn(3, 4)
    torch.func.vmap(look)(x)
    torch.func.grad(look)(x)
    torch.func.vmap(torch.func.grad(look))(x)
    torch.func.functionalize(look)(x)
    assert seen == [(None, None)] * 4
    assert capfd.readouterr().err == ""


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_view_is_described_as_torch_says(data):
    kernel = native.functions
    dtype = data.draw(st.sampled_from(TYPES))
    sizes = data.draw(st.lists(st.integers(1, 5), max_size=5))
    tensor = torch.zeros(5**5 * 16, dtype=torch.uint8).view(dtype)
    strides = data.draw(st.lists(st.integers(0, 40), min_size=len(sizes), max_size=len(sizes)))
    offset = data.draw(st.integers(0, 50))
    tensor = tensor.as_strided(sizes, strides, offset)
    if data.draw(st.booleans()) and (dtype.is_floating_point or dtype.is_complex):
        tensor = torch.nn.Parameter(tensor)
    elements = tensor.numel()
    address = torch._C._data_address(tensor) + offset * tensor.element_size()
    found = kernel.describe(tensor)
    assert found == (native.CODES[dtype], address, elements, sizes, strides)


def test_asking_does_not_make_a_lazy_copy_real(kernel):
    lazy = torch._lazy_clone(torch.randn(3))
    short, long = both(kernel, lazy)
    assert short == long
    assert short is not None
    assert torch._C._is_cow_tensor(lazy)


@pytest.mark.parametrize("what", ["functions", "handles", "keys", "few", "an error"])
def test_where_torch_is_otherwise_python_is_asked(kernel, monkeypatch, what):
    """Each thing that is found out may be wrong in another torch: then nothing is used."""
    addresses = direct._addresses()
    if what == "functions":
        monkeypatch.setattr(direct, "_addresses", lambda: (*addresses[:-1], 0))
    elif what == "keys":
        monkeypatch.setattr(direct, "_keys", lambda tensor: 0x123456789ABCDEF1)
    elif what == "few":
        monkeypatch.setattr(direct, "_odd_tensors", lambda: [torch.ones(1)])
    elif what == "an error":
        monkeypatch.setattr(direct, "_addresses", lambda: 1 / 0)
    else:
        monkeypatch.setattr(direct, "_held", lambda tensor: tensor._cdata + 8)
    assert not direct.learn(kernel, TYPES)
    tensor = torch.arange(12.0).reshape(3, 4)[1:]
    assert kernel.describe(tensor) == (
        native.CODES[torch.float32], tensor.data_ptr(), 8, [2, 4], [4, 1],
    )  # fmt: skip


def test_an_answer_that_differs_turns_it_off(kernel, monkeypatch):
    class Lying:
        """A kernel whose short way is wrong about one tensor."""

        learn_direct = staticmethod(kernel.learn_direct)

        def __init__(self):
            self.on = True

        def ask_directly(self, on):
            self.on = on
            kernel.ask_directly(on)

        def describe(self, tensor):
            found = kernel.describe(tensor)
            return found if not self.on or tensor.dim() != 2 else (found[0], found[1] + 8, found[2])

    lying = Lying()
    assert not direct.learn(lying, TYPES)
    assert not lying.on


@pytest.mark.parametrize("way", [True, False])
def test_a_number_is_read_where_it_is_one(kernel, way):
    kernel.ask_directly(way)
    for dtype in (torch.float32, torch.float64):
        assert native.number_of(torch.tensor(2.5, dtype=dtype)) == 2.5
        assert native.number_of(torch.tensor([1.0, 2.5], dtype=dtype)[1]) == 2.5
    assert math.isnan(native.number_of(torch.tensor(math.nan)))
    assert native.number_of(torch.tensor(2.5, requires_grad=True) * 2) == 5.0
    for other in (
        torch.tensor([2.5]),
        torch.tensor(2),
        torch.tensor(2.5, dtype=torch.bfloat16),
        torch.tensor(2.5, device="meta"),
        torch._neg_view(torch.tensor(2.5)),
        torch.tensor(2.5).to_sparse(),
    ):
        assert native.number_of(other) is None


@pytest.mark.parametrize("way", [True, False])
def test_the_bytes_of_a_tensor(kernel, way):
    kernel.ask_directly(way)
    assert native.bytes_of(torch.zeros(3, 4)) == 48
    assert native.bytes_of(torch.zeros(3, 4, dtype=torch.float64)[:, 0]) == 24
    assert native.bytes_of(torch.zeros(0)) == 0
    assert native.bytes_of(torch.zeros(3, device="meta")) == -1
    assert native.bytes_of(torch.zeros(3).to_sparse()) == -1
