"""Many tensors in one call, against one at a time; numbers, samples and fingerprints."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nethook.stats.fields import INDEX
from nethook.stats.native import binding
from nethook.stats.rows import Rows
from nethook.stats.tables import SAMPLE, Follower, Numbers, Table, fingerprint, lies_flat, start_of

SHAPES = [(0,), (1,), (7,), (300, 9), (5000,), (2, 3, 4, 5)]


def table_of(rows, tensors, **columns):
    table = Table(rows, len(tensors))
    for at, tensor in enumerate(tensors):
        table.set(at, at, tensor)
    for name, values in columns.items():
        table.lines[name] = values
    return table


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_table_measures_what_slots_do(dtype):
    tensors = [torch.randn(shape).to(dtype) for shape in SHAPES[1:]]
    one, many = Rows(len(tensors), limit=1024), Rows(len(tensors), limit=1024)
    for at, tensor in enumerate(tensors):
        one.slot(at).fold(tensor)
    assert table_of(many, tensors).fold() == 0
    assert np.array_equal(one.matrix, many.matrix)
    assert np.array_equal(one.histograms, many.histograms)


def test_differences_factors_and_copies():
    now = [torch.randn(shape) for shape in SHAPES[1:]]
    before = [torch.randn_like(each) for each in now]
    copies = [torch.full_like(each, -1) for each in now]
    rows = Rows(len(now))
    table = table_of(rows, now, minus=[start_of(each) for each in before])
    table.fold()
    for at, (a, b) in enumerate(zip(now, before, strict=True)):
        change = (a - b).double()
        assert np.isclose(rows.matrix[at, INDEX["mean"]], change.mean().item(), atol=1e-7)
        assert rows.matrix[at, INDEX["max"]] == change.max().item()
        assert np.isclose(table.squares[at], change.square().sum().item(), rtol=1e-5)
    scaled = Rows(len(now))
    table = table_of(scaled, now, factor=0.25, copy=[start_of(each) for each in copies])
    table.fold()
    for at, (a, copy) in enumerate(zip(now, copies, strict=True)):
        assert scaled.matrix[at, INDEX["min"]] == 0.25 * a.min().item()
        assert torch.equal(a, copy)


def test_a_factor_in_a_slot_is_that_of_the_values():
    x = torch.randn(40, 30).t()
    rows, other = Rows(1), Rows(1)
    assert rows.slot(0).fold(x, 0.5) == 0
    other.slot(0).fold(x * 0.5)
    assert np.allclose(rows.matrix, other.matrix, rtol=1e-6)
    assert np.array_equal(rows.histograms, other.histograms)


def test_what_is_not_finite_is_counted_where_it_is():
    tensors = [torch.ones(100), torch.tensor([1.0, torch.nan, -torch.inf]), torch.zeros(3).double()]
    rows = Rows(3)
    table = table_of(rows, tensors)
    assert table.count_odd() == 1
    assert table.odd.tolist() == [0, 1, 0]
    assert rows.matrix[:, INDEX["tensors"]].sum() == 0
    assert table.fold() == 2
    assert table.odd.tolist() == [0, 2, 0]
    assert rows.slot(0).fold(torch.tensor([torch.inf, 2.0])) == 1


def test_a_line_without_an_address_is_left_out():
    rows = Rows(2)
    tensors = [torch.ones(3), torch.ones(3)]  # a table holds none of them
    table = table_of(rows, tensors)
    table.address[0] = 0
    table.fold()
    assert rows.matrix[:, INDEX["tensors"]].tolist() == [0, 1]


@given(st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=20))
def test_numbers_are_tensors_of_one_element(values):
    rows, other = Rows(1), Rows(1)
    numbers = Numbers(rows, [0])
    slot = other.slot(0, histogram=False)
    for value in values:
        numbers.values[0] = value
        numbers.fold()
        assert np.isnan(numbers.values[0])
        slot.fold(torch.tensor(value, dtype=torch.float64))
    # What rounding took from the mean depends on the order of adding.
    kept = np.arange(18) != INDEX["mean_low"]
    np.testing.assert_allclose(rows.matrix[0, kept], other.matrix[0, kept], rtol=1e-9, atol=1e-30)


def test_numbers_without_the_native_kernel(monkeypatch):
    rows, other = Rows(3), Rows(3)
    values = [1.5, np.nan, -np.inf]
    for target, kernel in ((rows, binding.functions), (other, None)):
        monkeypatch.setattr(binding, "functions", kernel)
        numbers = Numbers(target, [0, 1, 2])
        for _ in range(3):
            numbers.values[:] = values
            numbers.fold()
    assert np.array_equal(rows.matrix, other.matrix)


def test_a_follower_gives_cosines_of_successive_moves():
    tensors = [torch.randn(50), torch.randn(1000).double()]
    rows = Rows(2)
    table = table_of(rows, tensors)
    follower = Follower(table)
    kept = []
    for _ in range(4):
        kept.append([each.clone().double() for each in tensors])
        told = follower.look()
        assert told == (len(kept) > 2)
        if told:
            for at in range(2):
                step = max(1, tensors[at].numel() // SAMPLE)
                points = [each[at][::step][:SAMPLE] for each in kept[-3:]]
                a, b = points[1] - points[0], points[2] - points[1]
                expected = (a @ b / (a.norm() * b.norm())).item()
                assert follower.cosines[at] == pytest.approx(expected, abs=1e-6)
        for each in tensors:
            each += torch.randn(each.shape)


def test_equal_bytes_have_equal_fingerprints():
    x = torch.randn(1000)
    assert fingerprint(x) == fingerprint(x.clone())
    assert fingerprint(x) != fingerprint(x + 1)
    assert fingerprint(x[:999]) != fingerprint(x)
    assert 0 <= fingerprint(torch.zeros(3, dtype=torch.uint8)) < 2**52
    assert fingerprint(x.expand(2, 1000)) is None


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("batch", [1, 64, 128, 256, 512])
def test_a_border_that_all_images_share_does_not_make_them_equal(batch, kernel, monkeypatch):
    if not kernel:
        monkeypatch.setattr(binding, "functions", None)
    marks = set()
    for seed in range(12):
        images = torch.zeros(batch, 1, 28, 28)
        chance = torch.Generator().manual_seed(seed)
        images[:, :, 4:24, 4:24] = torch.rand(batch, 1, 20, 20, generator=chance)
        marks.add(fingerprint(images))
        assert fingerprint(images.clone()) in marks
    assert len(marks) == 12


def test_memory_of_other_numbers_has_no_fingerprint(monkeypatch):
    shown = torch.randn(3, dtype=torch.complex64).conj()
    for _ in range(2):
        assert fingerprint(shown) is None
        assert fingerprint(shown.imag) is None
        monkeypatch.setattr(binding, "functions", None)


def test_what_lies_flat():
    x = torch.randn(2, 3, 4, 5)
    assert lies_flat(x)
    assert lies_flat(x.to(memory_format=torch.channels_last))
    assert not lies_flat(x.transpose(0, 1))
    assert not lies_flat(x.to_sparse())
    assert start_of(x[1]) == x.data_ptr() + 60 * 4


numbers = st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(float("nan")), st.integers(0, 9))


@given(st.lists(st.lists(numbers, min_size=3, max_size=3), max_size=6))
def test_the_numbers_of_several_steps_are_folded_as_one_after_the_other(steps):
    together, single = Rows(4), Rows(4)
    places = [2, 0, 3]
    Numbers(together, places).fold_lists(steps)
    one = Numbers(single, places)
    for values in steps:
        one.fold_list(values)
        single.step_ended()
    assert np.array_equal(together.matrix, single.matrix)
    assert together.seen.tolist() == single.seen.tolist()
    # What was counted is not counted again.
    together.step_ended()
    assert together.seen.tolist() == single.seen.tolist()


def probed(*grads, shapes=None):
    """A table with a line for each parameter, whose gradients these are."""
    shapes = shapes or [(4, 3)] * len(grads)
    table = Table(Rows(len(grads)), len(grads))
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in shapes]
    for at, (parameter, grad) in enumerate(zip(parameters, grads, strict=True)):
        table.set(at, at, parameter.detach())
        parameter.grad = grad
    return table, parameters


NAN = torch.ones(4, 3).index_fill(0, torch.tensor([2]), float("nan"))


@pytest.mark.parametrize(
    ("grads", "found"),
    [
        ((torch.ones(4, 3), NAN), False),  # the first that there is
        ((NAN, torch.ones(4, 3)), True),
        ((None, NAN), True),
        ((None, None), False),
        ((torch.ones(4, 3).to_sparse(), NAN), True),  # of one that cannot be read nothing is said
        ((torch.ones(3, 4).t(), NAN), True),  # does not lie in one piece
        ((-NAN.clone(), None), True),
        ((torch._neg_view(NAN), None), True),  # a sign changes nothing
        ((torch.ones(4, 3).fill_(float("inf")), None), True),
    ],
)
def test_a_probe_looks_at_the_first_gradient_that_lies_flat(grads, found):
    table, parameters = probed(*grads)
    assert table.prober(parameters, [0, 1], 1024)(0) is found


def test_of_a_large_gradient_a_probe_looks_at_others_each_time():
    grad = torch.zeros(5000)
    grad[7] = float("nan")
    table, parameters = probed(grad, shapes=[(5000,)])
    turns = [table.prober(parameters, [0], 1024)(turn) for turn in range(5)]
    assert turns == [False, False, True, False, False]  # every fifth, from the turn's on


class Odd(torch.Tensor):
    """A kind of tensor that the kernel does not read."""


def test_a_probe_leaves_other_kinds_alone():
    table, parameters = probed(None)
    with torch.no_grad():
        parameters[0].grad = NAN.as_subclass(Odd)
    assert table.prober(parameters, [0], 1024)(0) is False


def test_weights_are_found_where_they_lie_now():
    table, parameters = probed(None, None)
    assert table.find(parameters)
    first = table.address.copy()
    assert table.find(parameters)
    assert (table.address == first).all()
    other = torch.ones(4, 3)
    parameters[0].data = other
    assert table.find(parameters)
    assert table.address[0] == start_of(other)
    assert table.address[1] == first[1]
    parameters[0].data = torch.ones(3, 4).t()  # of the same size, and not in one piece
    assert not table.find(parameters)
    assert table.address[0] == 0
    parameters[0].data = torch.ones(4, 3)
    assert table.find(parameters)
    sparse = [torch.ones(4, 3).to_sparse(), parameters[1]]
    assert not table.find(sparse)
    assert not table.find([torch.ones(4, 3, dtype=torch.float64), parameters[1]])
    assert not table.find([torch.ones(4, 3, device="meta"), parameters[1]])
