"""The callback in a real learner of fastai."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.doctor.finding import Finding
from nethook.watching.diagnosis import Diagnosis

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip(
        "fastai.learner", reason="fastai needs a torch that its torchvision is built for."
    )
    from fastai.callback.schedule import Learner
    from fastai.data.core import DataLoaders
    from fastai.data.load import DataLoader

    from nethook.fastai import NethookCallback

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
PAIRS = list(zip(X, (X.sum(1) > 0).long(), strict=True))


def learner(folder: Path, **options: Any) -> Any:
    torch.manual_seed(0)
    loaders = DataLoaders(DataLoader(PAIRS, bs=8), DataLoader(PAIRS, bs=8))
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    learn = Learner(
        loaders, model, loss_func=nn.CrossEntropyLoss(), lr=1e-2, path=folder, **options
    )
    learn.remove_cbs([each for each in learn.cbs if "progress" in each.name])
    return learn


def test_a_training_is_one_run_with_the_trainers_numbers(tmp_path: Path) -> None:
    callback = NethookCallback(tmp_path / "run.db")
    learn = learner(tmp_path)
    with learn.no_logging():
        learn.fit(3, cbs=callback)
    assert callback.path == tmp_path / "run.db"
    assert not nethook.audit(learn.model).ours
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == 12
        logged = [float(row[1]) for row in learn.recorder.values]
        assert run.scalars["trainer/valid_loss"].value.tolist() == pytest.approx(logged)
        assert run.scalars["trainer/epoch"].value.tolist() == [0, 1, 2]
        assert run.loss(phase="eval").last == pytest.approx(logged[-1], rel=1e-5)
        # fastai shows a smoothed loss: the same number, from what nethook saw itself.
        smooth = 0.0
        for value in run.loss().value:
            smooth = 0.98 * smooth + 0.02 * value
        smooth /= 1 - 0.98**12
        assert float(learn.recorder.values[-1][0]) == pytest.approx(smooth, rel=1e-5)
        assert run.scalars["trainer/train_loss"].value[-1] == pytest.approx(smooth, rel=1e-5)


def test_the_search_for_a_rate_is_no_training(tmp_path: Path) -> None:
    callback = NethookCallback(tmp_path / "run.db")
    learn = learner(tmp_path, cbs=callback)
    with learn.no_logging():
        learn.lr_find(num_it=4, show_plot=False)
        learn.get_preds(1)
    assert callback.path is None


def test_a_training_goes_on_in_its_run(tmp_path: Path) -> None:
    learn = learner(tmp_path)
    with learn.no_logging():
        learn.fit(1, cbs=NethookCallback(tmp_path / "run.db"))
        learn.fit(3, cbs=NethookCallback(tmp_path / "run.db"), start_epoch=1)
    with nethook.open_run(tmp_path / "run.db") as run:
        assert len(run.info["sessions"]) == 2
        assert run.ranks[0].last_step == 11


def test_a_finding_can_stop_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding("diverged", "error", "The loss has diverged.", "Lower the rate.")
    monkeypatch.setattr(Diagnosis, "findings", property(lambda self: (found,)))
    learn = learner(tmp_path)
    with learn.no_logging():
        learn.fit(3, cbs=NethookCallback(tmp_path / "run.db", on_finding="stop"))
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == 1
        assert "ended" not in run.info or run.info["ended"] is None
