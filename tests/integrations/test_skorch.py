"""The callback in a real net of skorch."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import nethook
from nethook.doctor.finding import Finding
from nethook.watching.diagnosis import Diagnosis

skorch = pytest.importorskip("skorch", reason="skorch is in the environment of `make trainers`.")

from sklearn.base import clone  # noqa: E402

from nethook.integrations.trainer_run import RecordsRun  # noqa: E402
from nethook.skorch import NethookCallback  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.random.default_rng(0).normal(size=(40, 4)).astype("float32")
Y = (X.sum(1) > 0).astype("int64")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.layers(X)


def net(callback: NethookCallback, **options: Any) -> Any:
    known = {"max_epochs": 3, "batch_size": 8, "lr": 1e-2, "verbose": 0, **options}
    return skorch.NeuralNetClassifier(
        Net,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        callbacks=[callback],
        **known,
    )


def test_a_training_is_one_run_with_the_trainers_numbers(tmp_path: Path) -> None:
    callback = NethookCallback(tmp_path / "run.db")
    trained = net(callback).fit(X, Y)
    assert callback.path == tmp_path / "run.db"
    assert not nethook.audit(trained.module_).ours
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == 12  # a fifth of 40 samples is for validation
        history = trained.history
        for name in ("train_loss", "valid_loss", "valid_acc", "epoch"):
            assert run.scalars[f"trainer/{name}"].value.tolist() == pytest.approx(history[:, name])
        assert run.loss().between(8, 11).mean == pytest.approx(history[-1, "train_loss"], rel=1e-5)
        assert run.loss(phase="eval").last == pytest.approx(history[-1, "valid_loss"], rel=1e-5)


def test_partial_fit_goes_on_in_the_run(tmp_path: Path) -> None:
    trained = net(NethookCallback(tmp_path / "run.db"), max_epochs=1).fit(X, Y)
    trained.save_params(
        f_params=tmp_path / "params.pt", f_optimizer=tmp_path / "optimizer.pt",
        f_history=tmp_path / "history.json",
    )  # fmt: skip
    again = net(NethookCallback(tmp_path / "run.db"), max_epochs=2).initialize()
    again.load_params(
        f_params=tmp_path / "params.pt", f_optimizer=tmp_path / "optimizer.pt",
        f_history=tmp_path / "history.json",
    )  # fmt: skip
    again.partial_fit(X, Y)
    with nethook.open_run(tmp_path / "run.db") as run:
        assert len(run.info["sessions"]) == 2
        assert run.ranks[0].last_step == 11
        assert run.scalars["trainer/epoch"].value.tolist() == [1, 2, 3]


def test_a_finding_can_stop_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding("diverged", "error", "The loss has diverged.", "Lower the rate.")
    monkeypatch.setattr(Diagnosis, "findings", property(lambda self: (found,)))
    net(NethookCallback(tmp_path / "run.db", on_finding="stop")).fit(X, Y)
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == 1


def test_it_can_be_cloned_as_searches_over_settings_do(tmp_path: Path) -> None:
    given = NethookCallback(
        tmp_path / "run.db", budget=0.1, on_finding="stop", report=True, sinks=["wandb"]
    )
    other = clone(given)
    assert other is not given
    assert other.get_params() == given.get_params()
    assert other.get_params()["to"] == tmp_path / "run.db"
    assert clone(net(given)).callbacks[0].budget == 0.1


def test_it_has_the_options_that_all_have() -> None:
    mine = inspect.signature(NethookCallback).parameters
    theirs = inspect.signature(RecordsRun).parameters
    assert {name: each.default for name, each in mine.items()} == {
        name: each.default for name, each in theirs.items()
    }
    assert NethookCallback().get_params() == {name: each.default for name, each in mine.items()}
