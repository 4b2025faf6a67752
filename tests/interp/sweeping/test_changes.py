"""What is put into a place: each change by itself. `test_sweep` compares them with the loop."""

import pytest
import torch

from nethook import edits, interp
from nethook.errors import OptionError, SweepError
from nethook.interp.sweeping.changes import At, as_change

HERE = At("here", 0, 0, 1)


class Runs:
    """Gives the same values for everything."""

    def __init__(self, *values):
        self._values = list(values)

    def values(self, inputs):
        return {"here": self._values if inputs is None else [inputs]}

    def metric(self, inputs):
        return torch.zeros(2)

    def rows_of(self, site):
        return 0


def test_texts():
    changes = [interp.take(None), interp.mean_of([]), interp.resample(None, seed=2),
               interp.noise_at(0.5), edits.zero(), edits.scale(2.0), torch.neg]  # fmt: skip
    assert [as_change(change).text for change in changes] == [
        "take(source)", "mean_of(data)", "resample(pool, seed=2)", "noise_at(0.5, seed=0)",
        "zero()", "scale(factor=2.0)", "neg",
    ]  # fmt: skip


def test_noise_is_the_same_every_time_and_differs_by_site_and_row():
    noise, value = interp.noise_at(1.0, seed=1), torch.zeros(2, 3)
    one = noise.new(value, HERE)
    assert torch.equal(one, noise.new(value, HERE))
    assert torch.equal(one[:1], noise.new(value[:1], HERE))
    assert not torch.equal(one[0], one[1])
    assert not torch.equal(one, noise.new(value, At("there", 0, 0)))
    assert not torch.equal(one, interp.noise_at(1.0, seed=2).new(value, HERE))


def test_what_does_not_fit_says_so():
    short = interp.take(None)
    short.prepare(Runs(torch.zeros(2, 3)))
    with pytest.raises(SweepError, match="was called 2 times or more with base, and 1 times"):
        short.new(torch.zeros(2, 3), At("here", 1, 0))
    pairs = interp.take(None, positions=[(0, 1)])
    pairs.prepare(Runs(torch.arange(6.0).reshape(2, 3)))
    assert pairs.new(torch.zeros(2, 2), HERE).tolist() == [[1, 0], [4, 0]]
    with pytest.raises(SweepError, match='needs over="positions"'):
        pairs.new(torch.zeros(2, 2), At("here", 0, 0))
    with pytest.raises(OptionError, match="`positions` must be pairs"):
        interp.take(None, positions=[(1, 2, 3)])
    with pytest.raises(SweepError, match="must give at least one batch; it gave none"):
        interp.mean_of([]).prepare(Runs())
    uneven = interp.mean_of([torch.zeros(1, 2), torch.zeros(1, 3)], each_position=True)
    with pytest.raises(SweepError, match="must give values of one shape at 'here'"):
        uneven.prepare(Runs())
    pool = interp.resample(None)
    pool.prepare(Runs(torch.zeros(4, 7)))
    with pytest.raises(SweepError, match="same shape as base but for its rows"):
        pool.new(torch.zeros(2, 3), HERE)
    with pytest.raises(SweepError, match=r"got edits\.answer, which cannot"):
        as_change(edits.answer(torch.ones(1)))


def test_a_recorded_patch_is_given_its_call():
    change = as_change(edits.patch([torch.zeros(2), torch.ones(2)]))
    assert change.new(torch.zeros(2), At("here", 1, 0)).tolist() == [1, 1]
