"""Training functions of Ray Train: with a worker of Ray's where it is installed, and without."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.ray import followed

WITH_RAY = """
import os
import sys

import ray
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model
from torch import nn

from nethook.ray import followed


def train(config):
    torch.manual_seed(0)
    model = prepare_model(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    for step in range(12):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
        ray.train.report({"step": step})


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
TorchTrainer(
    followed(train, to="runs/ray.db"),
    train_loop_config={"lr": 0.1},
    scaling_config=ScalingConfig(num_workers=2),
    run_config=RunConfig(storage_path=os.path.abspath("results")),
).fit()
"""


def train(config: dict[str, Any]) -> float:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    for _ in range(12):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        if config.get("fails"):
            raise ValueError("no such batch")
    return loss.item()


def test_a_function_records_what_it_trains(tmp_path: Path) -> None:
    recorded = followed(train, str(tmp_path / "run.db"), budget=None)
    assert recorded({"lr": 0.1}) == train({"lr": 0.1})
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.ranks[0].state == "finished"
        assert run.info["name"] == "train"
        assert run.info["totals"]["steps"] == 12


def test_an_error_ends_the_run_and_goes_where_it_goes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such batch"):
        followed(train, str(tmp_path / "run.db"))({"lr": 0.1, "fails": True})
    with nethook.open_run(tmp_path / "run.db") as run:
        assert "no such batch" in json.dumps(run.info)


def test_it_takes_what_the_function_takes() -> None:
    assert inspect.signature(followed(train)) == inspect.signature(train)
    assert list(inspect.signature(followed(lambda: None)).parameters) == []


def test_the_file_is_named_by_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recorded = followed(train)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # a worker has a folder of its own
    recorded({"lr": 0.1})
    [path] = (tmp_path / "runs").glob("*.db")
    assert path.name.startswith("train-")


@pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray itself has an environment of its own: docs/clusters.md"
)
def test_two_workers_of_ray_write_one_run(tmp_path: Path) -> None:
    (tmp_path / "driver.py").write_text(WITH_RAY)
    done = subprocess.run(
        [sys.executable, "driver.py"], cwd=tmp_path, capture_output=True, text=True, timeout=500,
        env={**os.environ, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    names = sorted(path.name for path in (tmp_path / "runs").glob("*.db"))
    assert names == ["ray.db", "ray.rank1.db"]
    with nethook.open_run(tmp_path / "runs" / "ray.db") as run:
        assert [(rank.rank, rank.state) for rank in run.ranks] == [(0, "finished"), (1, "finished")]
        assert run.info["totals"]["steps"] == 12
        assert run.loss().last < run.loss().first
