"""Which dimension counts the units, when one is dead, and where an activation ends."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import NotFiniteError, OptionError
from nethook.examining.checkup.batch import Batch
from nethook.examining.checkup.dead_units import dead_units
from nethook.kinds.modules import bounds, is_rectifier, kind_of, unit_dim
from nethook.stats.rows import Rows
from nethook.stats.summary import summarise


@pytest.mark.parametrize(
    ("module", "shape", "units"),
    [
        (nn.Linear(5, 7), (2, 5), 7),
        (nn.Linear(5, 7), (2, 3, 5), 7),
        (nn.Linear(5, 7), (5,), 7),
        (nn.Conv1d(2, 7, 3), (4, 2, 9), 7),
        (nn.Conv1d(2, 7, 3), (2, 9), 7),
        (nn.Conv2d(2, 7, 3), (4, 2, 9, 9), 7),
        (nn.Conv2d(2, 7, 3), (2, 9, 9), 7),
        (nn.ConvTranspose2d(2, 7, 3), (4, 2, 9, 9), 7),
        (nn.Conv3d(2, 7, 3), (4, 2, 9, 9, 9), 7),
        (nn.BatchNorm1d(7), (4, 7), 7),
        (nn.BatchNorm1d(7), (4, 7, 3), 7),
        (nn.BatchNorm2d(7), (4, 7, 3, 3), 7),
        (nn.GroupNorm(1, 7), (4, 7, 3), 7),
        (nn.InstanceNorm2d(7), (4, 7, 3, 3), 7),
        (nn.LayerNorm(7), (4, 3, 7), 7),
        (nn.MaxPool2d(2), (4, 7, 6, 6), 7),
        (nn.Embedding(9, 7), None, 7),
        (nn.ReLU(), (4, 7), 7),
        (nn.ReLU(), (4, 3, 7), 7),
        (nn.ReLU(), (4, 7, 3, 3), 7),
        (nn.Sigmoid(), (4, 7, 3, 3, 3), 7),
    ],
    ids=str,
)
def test_the_unit_dimension_of_a_module(module, shape, units):
    x = torch.zeros(2, 3, dtype=torch.long) if shape is None else torch.randn(shape)
    out = module(x)
    dim = unit_dim(module, out.dim())
    assert dim is not None
    assert out.shape[dim] == units


def test_where_there_is_none():
    assert unit_dim(nn.Linear(1, 1), 0) is None
    assert unit_dim(nn.Conv3d(1, 1, 1), 3) is None
    assert unit_dim(nn.BatchNorm1d(3), 1) is None


def test_bounds():
    assert bounds(nn.Sigmoid()) == (0.0, 1.0)
    assert bounds(nn.Tanh()) == (-1.0, 1.0)
    assert bounds(nn.Hardtanh(-2, 3)) == (-2.0, 3.0)
    assert bounds(nn.ReLU()) is None
    assert bounds(nn.ReLU6()) is None


def test_a_dead_unit_is_silent_over_a_whole_window():
    rows = Rows(1)
    slot = rows.slot(0, unit_dim=1)
    slot.fold(torch.tensor([[0.0, 1.0, 0.0]]))
    slot.fold(torch.tensor([[2.0, 0.0, 0.0]]))
    rows.collect()
    assert slot.bits is not None
    assert slot.bits.tolist() == [1, 1, 0]
    rows.clear()
    assert slot.bits.tolist() == [0, 0, 0]


def test_a_saturated_unit_is_near_an_end():
    rows = Rows(1)
    slot = rows.slot(0, bounds=bounds(nn.Tanh()))
    slot.fold(torch.tensor([-1.0, -0.95, -0.94, -0.93, 0.0, 0.95, 1.0]))
    rows.collect()
    assert rows.matrix[0, 12:15].tolist() == [3 - 1, 2, 7]  # within 3 % of a range of 2: 0.06


def test_rows_refuse_what_cannot_be():
    with pytest.raises(OptionError, match="`row` must be one of the 3 rows; got 3"):
        Rows(3).slot(3)
    with pytest.raises(OptionError, match="`limit` must be at least 1"):
        Rows(3, limit=0)


# (activation, inputs of one unit over a batch, is it dead)
UNITS = [
    (nn.ReLU(), [-1.0, -2.0], True),
    (nn.ReLU(), [-1.0, 0.5], False),
    (nn.ReLU6(), [-1.0, -3.0], True),
    (nn.ReLU6(), [7.0, 9.0], False),  # saturated
    (nn.LeakyReLU(), [-1.0, -2.0], False),
    (nn.PReLU(), [-1.0, -2.0], False),
    (nn.ELU(), [-50.0, -60.0], False),  # saturated
    (nn.GELU(), [-1.0, -2.0], False),
    (nn.GELU(), [-50.0, -60.0], True),
    (nn.SiLU(), [-1.0, -2.0], False),
    (nn.Sigmoid(), [-20.0, -30.0], False),  # saturated
    (nn.Tanh(), [20.0, 30.0], False),  # saturated
    (nn.Tanh(), [0.0, 0.0], True),
    (nn.ReLU(), [float("nan"), -1.0], False),
]


@pytest.mark.parametrize(("activation", "inputs", "dead"), UNITS, ids=lambda each: str(each))
def test_a_dead_unit_is_the_same_everywhere(activation, inputs, dead):
    """One unit that is what the table says, beside one that is alive: three ways to ask."""
    alive = torch.linspace(0.5, 1.5, 8)
    x = torch.stack([torch.tensor(inputs).repeat(4), alive], dim=1)
    expected = [dead, False]
    # Counted by hand, and by numpy.
    output = activation(x).detach()
    assert [not bool((output[:, unit].numpy() != 0).any()) for unit in (0, 1)] == expected
    # The kernels.
    found = summarise(output, unit_dim=unit_dim(activation, output.dim()))
    assert (found.bits == 0).tolist() == expected
    # Callbacks.
    model = nn.Sequential(activation)
    callbacks = nethook.Callbacks(model)
    monitor = callbacks.dead_units("0")
    with callbacks:
        for part in x.split(2):  # over a window, not over a batch
            model(part)
    assert monitor["0"].tolist() == expected
    # The check-up, which asks rectifiers alone.
    if is_rectifier(activation):
        given = nethook.Inputs((x,), {})
        silent = dead_units(model, Batch(given, None))
        assert silent["0"] == (sum(expected), 2)


SHAPES = [
    (nn.Conv1d(2, 5, 3), (4, 2, 9)),
    (nn.Conv2d(2, 5, 3), (4, 2, 9, 9)),
    (nn.BatchNorm1d(5), (4, 5, 9)),
    (nn.Linear(3, 5), (4, 7, 7, 3)),
    (nn.Sequential(nn.Conv2d(2, 5, 3)), (4, 2, 9, 9)),
    (nn.ReLU(), (4, 5, 9, 9)),
]


@pytest.mark.parametrize(("module", "shape"), SHAPES, ids=str)
def test_callbacks_and_kernels_count_along_one_dimension(module, shape):
    model = nn.Sequential(module)
    callbacks = nethook.Callbacks(model)
    monitor = callbacks.dead_units("0")
    with callbacks:
        out = model(torch.randn(shape))
    assert len(monitor["0"]) == out.shape[unit_dim(module, out.dim())] == 5


def test_a_monitor_of_huge_outputs_costs_what_their_memory_costs():
    class Expands(nn.Module):
        def forward(self, x):
            return x[..., None].expand(*x.shape, 2**40)

    model = Expands()
    callbacks = nethook.Callbacks(model)
    stats = callbacks.activation_stats("")
    dead = callbacks.dead_units("", unit_dim=1)
    callbacks.check_finite("", grads=False)
    x = torch.tensor([[0.0, 1.0, 5.0], [0.0, 2.0, 4.0]])
    with callbacks:
        model(x)
    assert dead[""].tolist() == [True, False, False]
    assert stats[""]["mean"] == [2.0]
    assert stats[""]["std"] == [pytest.approx(float(x.std(correction=0)))]
    assert (stats[""]["min"], stats[""]["max"]) == ([0.0], [5.0])
    with pytest.raises(NotFiniteError, match="1099511627776 of 6597069766656 values"), callbacks:
        model(torch.tensor([[0.0, 1.0, 5.0], [0.0, 2.0, float("nan")]]))


def test_statistics_of_overlapping_outputs():
    x = torch.randn(40)
    model = nn.Identity()
    callbacks = nethook.Callbacks(model)
    stats = callbacks.activation_stats("")
    windows = x.as_strided((7, 20), (3, 1))
    with callbacks:
        model(windows)
    found = {name: column[0] for name, column in stats[""].items()}
    expected = windows.double().numpy()
    assert found["mean"] == pytest.approx(expected.mean())
    assert found["std"] == pytest.approx(expected.std(ddof=1))
    assert (found["min"], found["max"]) == (expected.min(), expected.max())


def test_a_unit_dimension_that_is_not_there():
    model = nn.Identity()
    callbacks = nethook.Callbacks(model)
    callbacks.dead_units("", unit_dim=3)
    said = "`unit_dim` must be a dimension of the output of '', which has 2; got 3"
    with pytest.raises(OptionError, match=said), callbacks:
        model(torch.ones(2, 2))


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        (nn.ReLU6(), "rectifier"),
        (nn.Dropout2d(), "dropout"),
        (nn.BatchNorm1d(2), "norm"),
        (nn.InstanceNorm2d(2), "norm"),
        (nn.Tanh(), "bounded"),
        (nn.Hardtanh(), "bounded"),
        (nn.Conv2d(1, 1, 1), "linear"),
        (nn.Flatten(), "linear"),
        (nn.GELU(), None),
        (nn.LSTM(1, 1), None),
    ],
)
def test_what_a_module_does_to_what_passes_through(module, kind):
    assert kind_of(module) == kind
