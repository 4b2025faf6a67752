"""Rows that join a run at their own site: the same numbers, and whatever forbids it is noticed."""

import pytest
import torch
from torch import nn

from nethook import interp
from nethook.interp.sweeping.joining import DoesNotJoin, Joins, may_join
from nethook.interp.sweeping.recording import Called
from nethook.interp.sweeping.sites import Site

WIDTH, TOKENS = 6, 5


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())

    def forward(self, x):
        return x + self.mlp(x) + x.cumsum(1) / 10


class Chain(nn.Module):
    """Blocks one after the other; what is done around them is another function of the rows."""

    def __init__(self, around):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.around = around

    def forward(self, x):
        first, count = x, len(x)
        for block in self.blocks:
            x = self.around(block(x), first, count)
        return x


def alone(x, first, count):
    return x


def long_skip(x, first, count):
    return x + first


def counted(x, first, count):
    """Only as many rows as there were at the start: nothing fails."""
    x = x.clone()
    x[:count] *= 2
    return x


def scattered(x, first, count):
    """An index of the first rows: `scatter` leaves others as they are, and nothing fails."""
    return x.scatter(1, torch.zeros(count, 1, WIDTH, dtype=torch.long), first[:, 1:2])


def of_its_own(x, first, count):
    return x - x.mean(-1, keepdim=True)


def swept(model, x, source, **options):
    return interp.sweep(
        model, x, at=options.pop("at", "blocks.*"), over="positions", change=interp.take(source),
        metric=lambda out: out[:, -1].sum(-1), **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def texts():
    torch.manual_seed(0)
    return torch.randn(2, 3, TOKENS, WIDTH, dtype=torch.double)


@pytest.mark.parametrize("around", [alone, of_its_own])
def test_sites_of_a_chain_share_one_run(around, texts):
    model = Chain(around).double()
    x, source = texts
    exact = swept(model, x, source, rows=1)
    joined = swept(model, x, source, rows=40)
    torch.testing.assert_close(joined.values, exact.values, rtol=0, atol=1e-10)
    assert (joined.runs, exact.runs) == (1, 4 * TOKENS)


@pytest.mark.parametrize("around", [long_skip, counted, scattered])
def test_rows_that_are_carried_past_a_site_are_noticed(around, texts):
    model = Chain(around).double()
    x, source = texts
    exact = swept(model, x, source, rows=1)
    given = swept(model, x, source, rows=10)
    torch.testing.assert_close(given.values, exact.values, rtol=0, atol=1e-10)
    assert given.runs == 1 + 2  # an attempt, and two runs of all ten copies
    chosen = swept(model, x, source)
    torch.testing.assert_close(chosen.values, exact.values, rtol=0, atol=1e-10)


def test_branches_of_a_residual_stream_do_not_join(texts):
    x, source = texts
    model = Chain(alone).double()
    exact = swept(model, x, source, at="blocks.*.mlp", rows=1)
    several = swept(model, x, source, at="blocks.*.mlp", rows=40)
    torch.testing.assert_close(several.values, exact.values, rtol=0, atol=1e-10)
    assert several.runs == 2  # an attempt that failed, and all in one


def test_an_error_of_the_models_own_is_not_hidden(texts):
    x, source = texts
    model = Chain(alone).double()

    def metric(out):
        if len(out) > 9:  # more than the three copies of the base run
            raise ZeroDivisionError("of the metric")
        return out[:, -1].sum(-1)

    with pytest.raises(ZeroDivisionError, match="of the metric"):
        interp.sweep(
            model, x, at="blocks.*", over="positions", change=interp.take(source), metric=metric,
            rows=10,
        )  # fmt: skip


def test_an_interrupted_sweep_that_does_not_join_goes_on(tmp_path, texts):
    x, _ = texts
    model = Chain(long_skip).double()
    calls = []

    def change(value):
        calls.append(1)
        if len(calls) == 3:  # once per site: of the second of two runs
            raise KeyboardInterrupt
        return torch.zeros_like(value)

    options = {"at": "blocks.*", "over": "positions", "metric": lambda out: out[:, -1].sum(-1)}
    path = tmp_path / "sweep.json"
    with pytest.raises(KeyboardInterrupt):
        interp.sweep(model, x, change=change, rows=10, to=path, **options)
    result = interp.sweep(model, x, change=change, rows=10, to=path, **options)
    plain = interp.sweep(model, x, change=torch.zeros_like, rows=1, **options)
    torch.testing.assert_close(result.values, plain.values, rtol=0, atol=1e-10)
    assert result.runs < 4


def site(address, module, output):
    return Site(address, module, (), Called(address, module, outputs=[output]))


def test_copies_join_before_the_last():
    base = torch.tensor([[1.0], [2.0]])
    place = site("a", nn.Identity(), base)
    joins = Joins({"a": 2}, {"a": (0,)}, 2)
    now = torch.tensor([[5.0], [6.0], [7.0], [8.0]])
    assert joins.grown(place, now, 2).flatten().tolist() == [5, 6, 1, 2, 1, 2, 7, 8]
    with pytest.raises(DoesNotJoin):
        joins.grown(place, now, 3)
    with pytest.raises(DoesNotJoin):
        joins.grown(place, (now, now), 2)


def test_an_attempt_is_made_for_modules_beside_each_other():
    value = torch.ones(1, 2)
    dims = {"a": (0,), "b": (0,), "a.c": (0,), "d": (None,)}
    a, b, c, d = (site(name, nn.Identity(), value) for name in ("a", "b", "a.c", "d"))
    assert may_join([a, b], dims)
    assert not may_join([a], dims)
    assert not may_join([a, c], dims)  # one inside the other
    assert not may_join([a, d], dims)  # no rows
    assert not may_join([a, site("e", nn.Identity(), value)], dims)
    assert not may_join([a, site("a/relu#0", None, value)], dims)
