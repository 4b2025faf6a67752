"""Shapley values: captum's exact ones, axioms, and what antithetic orders make exact."""

import pytest
import torch
from captum.attr import ShapleyValues
from torch import distributed, nn
from torch import multiprocessing as mp

from nethook import interp
from nethook.errors import OptionError


def mlp(width: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 2)).double()


def test_few_parts_are_exact_as_captum():
    model, x = mlp(5), torch.randn(3, 5).double()
    base = torch.randn(5).double()
    found = interp.shapley(model, x, target=1, baseline=base, samples=16)
    theirs = ShapleyValues(model).attribute(x, base.expand(3, 5), target=1)
    assert torch.allclose(found.values, theirs.double(), atol=1e-6)  # theirs is float32 inside
    assert float(found.errors.max()) == 0
    assert "5 parts, exact" in found.notes
    assert float(found.delta.abs().max()) < 1e-12


def test_sampling_is_within_its_errors_and_adds_up():
    model, x = mlp(12), torch.randn(2, 12).double()
    exact = interp.shapley(model, x, target=0, baseline=0, samples=800)
    assert "12 parts, exact" in exact.notes
    found = interp.shapley(model, x, target=0, baseline=0, samples=40)
    assert "12 parts, 40 orders" in found.notes
    assert float(found.delta.abs().max()) < 1e-12
    off = (found.values - exact.values).abs() / found.errors
    assert float(off.max()) < 4.5
    assert float(off.max()) > 0.5  # the errors are not too large either


def test_pairs_have_no_error_from_sampling():
    class Pairs(nn.Module):
        def forward(self, x):
            return (x[:, :-1] * x[:, 1:]).sum(1) + x.sum(1)

    x = torch.randn(2, 30).double()
    found = interp.shapley(Pairs(), x, baseline=0, samples=4)
    shared = x[:, :-1] * x[:, 1:] / 2
    expected = x.clone()
    expected[:, :-1] += shared
    expected[:, 1:] += shared
    assert torch.allclose(found.values, expected, atol=1e-12)
    assert float(found.errors.max()) < 1e-12


def test_patches_of_a_picture_add_up():
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 2)).double()
    found = interp.shapley(net, torch.randn(2, 2, 8, 8).double(), target="top", window=4)
    assert found.values.shape == (2, 1, 8, 8)
    assert torch.allclose(found.values.sum((1, 2, 3)), found.score - found.start)
    assert bool((found.values[:, 0, :4, :4] == found.values[:, 0, :1, :1]).all())


def test_samples_are_checked():
    with pytest.raises(OptionError, match=r"`samples` must be a number of at least 2; got 1"):
        interp.shapley(mlp(3), torch.randn(1, 3).double(), target=0, baseline=0, samples=1)


X = torch.randn(3, 9, generator=torch.Generator().manual_seed(0)).double()


def studied(**given):
    return interp.shapley(mlp(9), X, target=1, baseline=0, samples=8, rows=4, **given)


def on_a_rank(rank, store, folder):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    found = studied(spread=True)
    found.save(f"{folder}/{rank}.json")
    distributed.destroy_process_group()


def test_ranks_share_the_work_and_each_gets_the_whole(tmp_path):
    mp.start_processes(
        on_a_rank, (tmp_path / "store", str(tmp_path)), nprocs=2, start_method="fork"
    )
    alone = studied()
    for rank in range(2):
        found = interp.Attribution.load(tmp_path / f"{rank}.json")
        assert torch.equal(found.values, alone.values)
        assert torch.equal(found.score, alone.score)
