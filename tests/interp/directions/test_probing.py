"""Probes: honest scores, and coefficients of scikit-learn."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from torch import distributed
from torch import multiprocessing as mp

import nethook
from nethook import interp
from nethook.errors import OptionError
from tests.interp.directions.planted import gaussian


@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_scores_control_and_baseline(kind):
    x, labels, unit = gaussian(rows=300)
    p = interp.probe(x, labels, kind=kind)
    assert p.score > 0.9
    assert abs(p.control - 0.5) < 0.12
    assert p.selectivity == p.score - p.control
    assert p.baseline == float(torch.bincount(labels).max()) / 300
    assert abs(float(p.direction.vector @ unit)) > 0.9
    low, high = p.interval()
    assert low < p.score < high
    alpha = p.penalty
    if kind == "logistic":
        other = LogisticRegression(C=1 / alpha, tol=1e-10, max_iter=10_000)
        other.fit(x.numpy(), labels.numpy())
    else:
        other = Ridge(alpha=alpha).fit(x.numpy(), 2.0 * labels.numpy() - 1)
    coefficients = torch.tensor(other.coef_).reshape(1, -1)
    torch.testing.assert_close(p.weights, coefficients, rtol=1e-4, atol=1e-4)


def test_noise_has_nothing_and_groups_are_what_a_probe_could_learn_by_heart():
    random = torch.Generator().manual_seed(0)
    groups = torch.arange(200) // 10
    own = torch.randn(20, 30, generator=random, dtype=torch.double)
    x = own[groups] + 0.1 * torch.randn(200, 30, generator=random, dtype=torch.double)
    labels = torch.arange(20)[groups] % 2
    leaky = interp.probe(x, labels, kind="ridge")
    honest = interp.probe(x, labels, groups=groups, kind="ridge")
    assert leaky.score > 0.95  # rows of a group are on both sides
    assert honest.score < 0.75
    assert len(honest.parts) == 20


def test_numbers_and_several_classes_and_sites():
    x, _, unit = gaussian(rows=200)
    numbers = x @ unit + 0.1 * torch.randn(200, dtype=torch.double)
    p = interp.probe(x, numbers, kind="ridge")
    assert p.metric == "R²"
    assert p.score > 0.95
    assert p.control < 0.1
    assert float(p.direction.vector @ unit) > 0.99
    torch.testing.assert_close(p.predict(x), p.scores_of(x)[:, 0])
    labels = ["abc"[int(value)] for value in (numbers.argsort().argsort() * 3 // 200)]
    both = interp.probe({"one": x, "two": torch.randn(200, 4).double()}, labels, kind="ridge")
    assert list(both) == ["one", "two"]
    assert both["one"].score > both["two"].score
    assert "ridge probe of 3 classes from 12 features, 200 rows, 5 folds" in repr(both)
    assert len(both.figure().data) == 3


def test_features_of_a_file_and_the_direction_steers(tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 2)).double()
    x = torch.randn(60, 4, dtype=torch.double)
    labels = (x[:, 0] > 0).long()
    nethook.extract(model, [(x, labels)], at=["0"], to=tmp_path / "f", progress=False)
    stored = nethook.load_features(tmp_path / "f")
    p = interp.probe(stored, stored.labels, groups=stored.ids)
    again = interp.probe(stored.tensor("0"), labels)
    torch.testing.assert_close(p.weights, again.weights)
    with nethook.edit(model, outputs={"0": p.direction.steer(5.0)}), nethook.trace(model, "0") as t:
        model(x)
    moved = p.direction.project(t["0"].output) - p.direction.project(stored.tensor("0"))
    torch.testing.assert_close(moved, torch.full_like(moved, 5.0))


def test_refusals():
    x, labels, _ = gaussian(rows=30)
    for given, match in (
        ({"kind": "svm"}, '`kind` must be "ridge" or "logistic"'), ({"folds": 2}, "from 3 on"),
        ({"penalties": [-1.0]}, "`penalties` must be positive"),
        ({"groups": torch.zeros(30)}, "number of groups, 1"),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=match):
            interp.probe(x, labels, **given)
    with pytest.raises(OptionError, match="`labels` must be classes"):
        interp.probe(x, labels.double())


def on_a_rank(rank, store, folder):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    x, labels, _ = gaussian(rows=60)
    for kind in ("ridge", "logistic"):
        found = interp.probe(x, labels, kind=kind, spread=True, folds=3)
        found.save(f"{folder}/{kind}{rank}.json")
    nethook.edits.save(
        f"{folder}/e{rank}.json", outputs={"x": interp.erase(x, labels, spread=True)}
    )
    distributed.destroy_process_group()


def test_ranks_share_the_rows_and_get_the_same(tmp_path, monkeypatch):
    from nethook.interp.directions import samples
    from nethook.interp.directions.probe import Probe

    monkeypatch.setattr(samples, "_NUMBERS", 12 * 7)  # several chunks
    mp.start_processes(
        on_a_rank, (tmp_path / "store", str(tmp_path)), nprocs=2, start_method="fork"
    )
    x, labels, _ = gaussian(rows=60)
    for kind in ("ridge", "logistic"):
        alone = interp.probe(x, labels, kind=kind, folds=3)
        for rank in range(2):
            found = Probe.load(tmp_path / f"{kind}{rank}.json")
            torch.testing.assert_close(found.weights, alone.weights, rtol=1e-8, atol=1e-9)
            assert (found.score, found.control) == (alone.score, alone.control)
    alone = interp.erase(x, labels)
    for rank in range(2):
        edit = nethook.edits.load(tmp_path / f"e{rank}.json")["outputs"]["x"][""][0]
        torch.testing.assert_close(edit(x), alone(x))
