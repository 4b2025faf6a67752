"""Several processes share a sweep: each has its cells, and all get the same whole."""

import torch
from torch import distributed, nn
from torch import multiprocessing as mp

from nethook import interp
from nethook.interp.sweeping.ranks import Ranks


def first(out):
    return out[:, 0]


def study(**given):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 2))
    base, source = torch.randn(2, 2, 3)
    return interp.sweep(
        model, base, at=["0", "2"], over="units", change=interp.take(source), metric=first,
        rows=1, **given,
    )  # fmt: skip


def on_a_rank(rank, store, folder):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    result = study(spread=True, to=f"{folder}/whole.json")
    result.save(f"{folder}/{rank}.json")
    merged, done = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[rank == 0, rank == 1]])
    if rank == 1:
        merged[0, 1] = float("nan")
    Ranks(spread=True).merged(merged, done)
    torch.save(merged, f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def test_each_rank_runs_its_cells_and_gets_the_whole(tmp_path):
    mp.start_processes(
        on_a_rank, (tmp_path / "store", str(tmp_path)), nprocs=2, start_method="fork"
    )
    alone = study()
    for name in ("0", "1", "whole"):
        result = interp.Sweep.load(tmp_path / f"{name}.json")
        assert torch.equal(result.values, alone.values)
        assert (result.runs, result.sites) == (8, alone.sites)
    for rank in range(2):
        merged = torch.load(tmp_path / f"{rank}.pt")
        assert merged[0, 0].item() == 1.0
        assert merged[0, 1].isnan()


def test_alone_nothing_is_shared():
    ranks = Ranks(spread=False)
    assert (ranks.count, ranks.share([1, 2, 3]), ranks.least(3), ranks.greatest(0.5)) == (
        1, [1, 2, 3], 3, 0.5
    )  # fmt: skip


def test_alone_sums_and_names_are_ones_own():
    ranks = Ranks(spread=False)
    assert ranks.summed(torch.ones(2)).tolist() == [1.0, 1.0]
    assert ranks.agreed((["a"], ["b"])) == (["a"], ["b"])
