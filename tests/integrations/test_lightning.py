"""The callback in a real `Trainer` of Lightning."""

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
    import lightning.pytorch as pl

from nethook.lightning import NethookCallback

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning has advice of its own


class Module(pl.LightningModule):
    def __init__(self, fails_at: int = -1) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.fails_at = fails_at

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        if self.global_step == self.fails_at:
            raise RuntimeError("no more data")
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self.net(x), y))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), 1e-2)


def loader() -> torch.utils.data.DataLoader[Any]:
    x = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
    data = torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long())
    return torch.utils.data.DataLoader(data, batch_size=8)


def fit(callback: NethookCallback, folder: Path, module: Module, **options: Any) -> pl.Trainer:
    trainer = pl.Trainer(
        **{
            "max_epochs": 3, "log_every_n_steps": 2, "callbacks": [callback], "logger": False,
            "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu",
            "default_root_dir": folder, **options,
        }
    )  # fmt: skip
    path = options.pop("ckpt_path", None)
    trainer.fit(module, loader(), loader(), ckpt_path=path)
    return trainer


def test_a_training_is_one_run_with_the_trainers_numbers(tmp_path: Path) -> None:
    callback = NethookCallback(tmp_path / "run.db")
    module = Module()
    trainer = fit(callback, tmp_path, module, enable_checkpointing=False)
    assert callback.path == tmp_path / "run.db"
    assert not nethook.audit(module).ours
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == trainer.global_step == 12
        assert run.info["totals"]["evaluations"] == 3  # without the sanity check
        evaluated = run.scalars["trainer/val_loss"]
        assert evaluated.value[-1] == pytest.approx(float(trainer.callback_metrics["val_loss"]))
        assert len(evaluated) == 3
        assert run.scalars["trainer/train_loss"].step.tolist()[0] == 2
        assert run.scalars["trainer/epoch"].value[-1] == 2
        # The mean over samples that nethook saw is what Lightning has, to its rounding.
        assert run.loss(phase="eval").shown[-1] == pytest.approx(evaluated.value[-1], rel=1e-5)


def test_a_training_goes_on_in_its_run(tmp_path: Path) -> None:
    first = NethookCallback(tmp_path / "run.db")
    trainer = fit(first, tmp_path, Module(), max_epochs=1, enable_checkpointing=False)
    trainer.save_checkpoint(tmp_path / "a.ckpt")
    again = NethookCallback(tmp_path / "other.db")
    trainer = pl.Trainer(
        max_epochs=2, callbacks=[again], logger=False, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, accelerator="cpu",
    )  # fmt: skip
    trainer.fit(Module(), loader(), loader(), ckpt_path=tmp_path / "a.ckpt")
    assert again.path == tmp_path / "run.db"
    assert not (tmp_path / "other.db").exists()
    with nethook.open_run(tmp_path / "run.db") as run:
        assert len(run.info["sessions"]) == 2
        assert run.ranks[0].last_step == 7


def test_an_error_ends_the_run(tmp_path: Path) -> None:
    callback = NethookCallback(tmp_path / "run.db")
    with pytest.raises(RuntimeError, match="no more data"):
        fit(callback, tmp_path, Module(fails_at=5), enable_checkpointing=False)
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["ended"]["error"] == "RuntimeError: no more data"
        assert run.ranks[0].state == "finished"


def test_a_finding_can_stop_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding("diverged", "error", "The loss has diverged.", "Lower the rate.")
    monkeypatch.setattr(Diagnosis, "findings", property(lambda self: (found,)))
    callback = NethookCallback(tmp_path / "run.db", on_finding="stop")
    trainer = fit(callback, tmp_path, Module(), enable_checkpointing=False)
    assert trainer.global_step == 1


CONFIG = """
trainer:
  max_epochs: 1
  accelerator: cpu
  logger: false
  enable_checkpointing: false
  enable_progress_bar: false
  enable_model_summary: false
  callbacks:
    - class_path: nethook.lightning.NethookCallback
      init_args:
        to: runs/cli.db
        budget: 0.1
        include: net.*
        quantities: [outputs, params]
        snapshots: {net.0: 4}
        sinks: [tensorboard]
        on_finding: stop
        report: false
"""


def test_it_works_from_a_configuration_of_lightnings_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jsonargparse", reason="Lightning's command line needs jsonargparse.")
    from lightning.pytorch.cli import LightningCLI

    class Data(pl.LightningDataModule):
        def train_dataloader(self) -> Any:
            return loader()

    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.yaml").write_text(CONFIG, encoding="utf-8")
    LightningCLI(Module, Data, args=["fit", "--config", "settings.yaml"], save_config_callback=None)
    assert list((tmp_path / "runs" / "cli-tensorboard").iterdir())
    with nethook.open_run(tmp_path / "runs" / "cli.db") as run:
        assert run.info["totals"]["steps"] == 4
        kept = {(each.address, each.quantity) for each in run.catalogue}
        assert ("net.0", "outputs") in kept
        assert ("net.0.weight", "params") in kept
        assert not {quantity for _, quantity in kept} & {"grads", "updates"}
