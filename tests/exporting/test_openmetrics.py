"""What Prometheus reads, read back by the parser of its own client."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from prometheus_client.parser import text_string_to_metric_families
from torch import nn

import nethook
from nethook.exporting.openmetrics import openmetrics


def samples(run: nethook.types.Run, name: str | None = None) -> dict[str, dict[tuple, float]]:
    """Name of a sample -> its labels, without those that all share -> value."""
    read: dict[str, dict[tuple, float]] = {}
    for family in text_string_to_metric_families(openmetrics(run, name)):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("run") == (name or run.path.stem)
            assert labels.pop("rank") == "0"
            key = tuple(sorted(labels.items()))
            assert key not in read.setdefault(sample.name, {})
            read[sample.name][key] = sample.value
    return read


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.5}]
    optimizer = torch.optim.SGD(groups, lr=0.01)
    path = tmp_path_factory.mktemp("metrics") / "a run.db"
    with nethook.watch(model, optimizer, to=path) as watch:
        watch.be_silent()
        for _ in range(25):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).square().mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            optimizer.step()
    return path


def test_numbers_are_those_of_the_run(path: Path) -> None:
    run = nethook.open_run(path)
    read = samples(run)
    assert read["nethook_train_step"] == {(): 24}
    assert read["nethook_train_steps_total"] == {(): 25}
    (curve,) = run.loss_curves().values()
    assert read["nethook_train_loss"] == {(("loss", curve.loss),): curve.last}
    assert "nethook_eval_loss" not in read
    norms = read["nethook_train_grad_norm"]
    assert norms[("stage", "clipped"),] == pytest.approx(0.01, rel=1e-3)
    assert read["nethook_train_learning_rate"] == {
        (("group", "0.0"),): 0.01,
        (("group", "0.1"),): 0.5,
    }
    assert read["nethook_train_step_seconds_total"][()] > 0
    started = run.info["started"]
    (at,) = read["nethook_train_last_step_timestamp_seconds"].values()
    assert started - 1 <= at <= run.info["finished"] + 1
    (labels,) = read["nethook_run_info"]
    assert dict(labels) == {"model": "Sequential", "version": nethook.__version__}


def test_findings_are_counted_and_a_severity_without_any_is_zero(path: Path) -> None:
    run = nethook.open_run(path)
    found = samples(run)["nethook_findings"]
    assert {dict(labels)["severity"] for labels in found} == {"error", "warning", "info"}
    for labels, value in found.items():
        code = dict(labels)["code"]
        assert value == sum(each["code"] == code for each in run.findings)


def test_names_may_hold_anything(path: Path) -> None:
    hostile = 'a"b\\c\nd}'
    assert samples(nethook.open_run(path), hostile)["nethook_train_step"] == {(): 24}


def test_a_run_without_steps(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    target = tmp_path / "empty.db"
    with nethook.watch(model, torch.optim.SGD(model.parameters(), 0.1), to=target) as watch:
        watch.be_silent()
    assert samples(nethook.open_run(target))["nethook_train_steps_total"] == {(): 0}


def test_infinities_are_spelt_as_prometheus_does(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    target = tmp_path / "inf.db"
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=target) as watch:
        watch.be_silent()
        for _ in range(3):
            optimizer.zero_grad()
            (model(torch.ones(4, 2)).exp().sum() * float("inf")).backward()
            optimizer.step()
    values = samples(nethook.open_run(target)).get("nethook_train_loss", {}).values()
    assert all(value == float("inf") for value in values)
