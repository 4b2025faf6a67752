"""CKA: invariant, unbiased, the same however it is computed."""

import pytest
import torch
from torch import distributed, nn
from torch import multiprocessing as mp

import nethook
from nethook import interp
from nethook.errors import OptionError
from nethook.interp.comparing.cka import CKA


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Dropout(0.5), nn.Linear(12, 8)).double()


X = torch.randn(40, 6, generator=torch.Generator().manual_seed(0), dtype=torch.double)


def biased(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    return (x.T @ y).square().sum() / ((x.T @ x).norm() * (y.T @ y).norm())


def test_it_is_one_for_the_same_and_does_not_see_rotation_and_scale():
    torch.manual_seed(0)
    x, q = torch.randn(50, 7).double(), torch.linalg.qr(torch.randn(7, 7).double()).Q
    found = interp.cka({"x": x, "y": torch.randn(50, 7).double()}, {"r": 3 * x @ q + 5, "x": x})
    torch.testing.assert_close(found.values[0], torch.ones(2).double())
    assert abs(float(found.values[1, 0])) < 0.3


def test_independent_data_with_many_features_is_about_zero_where_the_biased_is_about_one():
    torch.manual_seed(0)
    x, y = torch.randn(2, 20, 2000).double()
    assert float(biased(x, y)) > 0.9
    assert abs(float(interp.cka({"x": x}, {"y": y}).values)) < 0.1


def test_on_many_samples_it_is_the_feature_form():
    torch.manual_seed(0)
    x = torch.randn(4000, 3).double()
    y = x @ torch.randn(3, 4).double() + 0.5 * torch.randn(4000, 4).double()
    found = interp.cka({"x": x}, {"y": y})
    assert found.batches == 16
    assert float(found.values) == pytest.approx(float(biased(x, y)), abs=0.02)


def test_networks_over_a_loader_and_all_is_left_as_it_was():
    a, b = network(0).train(), network(1)
    batches = [X[:16], X[16:32], X[32:38], X[38:]]
    found = interp.cka(a, b, batches, at=["0", "1", "3"])
    assert (found.batches, found.samples, found.left_out) == (3, 38, 2)
    assert found.sites_a == found.sites_b == ("0", "1", "3")
    assert a.training
    assert not nethook.audit(a)
    own = interp.cka(a, None, batches, at=["0", "1", "3"])
    torch.testing.assert_close(own.values.diagonal(), torch.ones(3).double())
    torch.testing.assert_close(own.values, own.values.T)
    stored = [
        {site: nethook.features(m, X[:32], at=site) for site in ("0", "1", "3")} for m in (a, b)
    ]
    whole = interp.cka(*stored)
    direct = interp.cka(a, b, X[:32], at=["0", "1", "3"])
    torch.testing.assert_close(whole.values, direct.values)


def test_what_a_sample_is_must_be_said():
    conv = nn.Conv2d(1, 3, 3).double()
    images = torch.randn(6, 1, 5, 5, dtype=torch.double)
    with pytest.raises(
        OptionError, match=r"must say what a sample is where '' has the shape \(6, 3"
    ):
        interp.cka(conv, None, images, at="")
    value = conv(images).detach()
    shapes = {
        "flatten": value.flatten(1), "mean": value.mean((2, 3)),
        "tokens": value.permute(0, 2, 3, 1).reshape(54, 3), "last": value[..., -1, -1],
    }  # fmt: skip
    other = torch.randn(6, 4).double()
    for pool, expected in shapes.items():
        found = interp.cka(conv, None, images, at="", pool=pool)
        assert found.samples == len(expected)
        if pool != "tokens":
            mixed = interp.cka({"a": value}, {"b": other}, pool=pool)
            torch.testing.assert_close(
                mixed.values, interp.cka({"a": expected}, {"b": other}).values
            )


def test_refusals_files_and_looks(tmp_path):
    with pytest.raises(OptionError, match="a batch of at least 4 samples"):
        interp.cka(network(0), None, X[:3], at="0")
    with pytest.raises(OptionError, match="both be networks, or both be features"):
        interp.cka(network(0), {"a": X}, X, at="0")
    with pytest.raises(OptionError, match="`data` and `at` must be given"):
        interp.cka(network(0), network(1))
    with pytest.raises(OptionError, match="must have the same rows on both sides"):
        interp.cka({"a": X}, {"a": X[1:]})
    with pytest.raises(OptionError, match='`pool` must be "flatten"'):
        interp.cka({"a": X}, pool="max")
    found = interp.cka({"a": X, "b": X.square()})
    found.save(tmp_path / "c.json")
    again = CKA.load(tmp_path / "c.json")
    assert torch.equal(again.values, found.values)
    assert repr(again) == repr(found)
    assert "CKA of 2 × 2 sites over 40 samples in 1 batches" in repr(found)
    assert found.figure().data[0].z.shape == (2, 2)


def on_a_rank(rank, store, folder):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    found = interp.cka(network(0), network(1), [X], at=["0", "3"], spread=True)
    found.save(f"{folder}/one{rank}.json")  # one batch: rank 1 has none
    found = interp.cka(
        network(0), network(1), [X[:16], X[16:32], X[32:]], at=["0", "3"], spread=True
    )
    found.save(f"{folder}/three{rank}.json")
    distributed.destroy_process_group()


def test_ranks_share_the_batches_and_get_the_same(tmp_path):
    mp.start_processes(
        on_a_rank, (tmp_path / "store", str(tmp_path)), nprocs=2, start_method="fork"
    )
    for name, data in (("one", [X]), ("three", [X[:16], X[16:32], X[32:]])):
        alone = interp.cka(network(0), network(1), data, at=["0", "3"])
        for rank in range(2):
            found = CKA.load(tmp_path / f"{name}{rank}.json")
            torch.testing.assert_close(found.values, alone.values)
            assert (found.samples, found.sites_a) == (40, ("0", "3"))
