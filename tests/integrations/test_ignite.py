"""The handler in a real engine of Ignite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.doctor.finding import Finding
from nethook.watching.diagnosis import Diagnosis

engines = pytest.importorskip(
    "ignite.engine", reason="Ignite is in the environment of `make trainers`."
)

from ignite.metrics import Loss  # noqa: E402

from nethook.ignite import NethookHandler  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
DATA = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(X, (X.sum(1) > 0).long()), batch_size=8
)


class Setting:
    """A model with a trainer and an evaluator after each epoch."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-2)
        loss = nn.CrossEntropyLoss()
        self.trainer = engines.create_supervised_trainer(self.model, self.optimizer, loss)
        self.evaluator = engines.create_supervised_evaluator(self.model, {"loss": Loss(loss)})
        self.trainer.add_event_handler(
            engines.Events.EPOCH_COMPLETED, lambda: self.evaluator.run(DATA)
        )

    def handler(self, to: Path, **options: Any) -> NethookHandler:
        made = NethookHandler(self.model, self.optimizer, to, **options)
        made.attach(self.trainer, evaluators={"val": self.evaluator})
        return made


def test_a_training_is_one_run_with_the_trainers_numbers(tmp_path: Path) -> None:
    setting = Setting()
    handler = setting.handler(tmp_path / "run.db")
    state = setting.trainer.run(DATA, max_epochs=3)
    setting.evaluator.run(DATA)  # after the end
    assert handler.path == tmp_path / "run.db"
    assert not nethook.audit(setting.model).ours
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == 12
        evaluated = run.scalars["trainer/val_loss"].value
        assert evaluated[-1] == pytest.approx(setting.evaluator.state.metrics["loss"])
        assert len(evaluated) == 3
        assert run.scalars["trainer/epoch"].value.tolist() == [1, 2, 3]
        assert run.scalars["trainer/loss"].value[-1] == pytest.approx(state.output)
        assert run.loss().last == pytest.approx(state.output, rel=1e-5)


def test_a_training_goes_on_in_its_run(tmp_path: Path) -> None:
    first = Setting()
    handler = first.handler(tmp_path / "run.db")
    first.trainer.run(DATA, max_epochs=1)
    kept = {"trainer": first.trainer.state_dict(), "nethook": handler.state_dict()}
    second = Setting()
    again = second.handler(tmp_path / "other.db")
    again.load_state_dict(kept["nethook"])
    second.trainer.load_state_dict(kept["trainer"])
    second.trainer.run(DATA, max_epochs=2)
    assert not (tmp_path / "other.db").exists()
    with nethook.open_run(tmp_path / "run.db") as run:
        assert len(run.info["sessions"]) == 2
        assert run.ranks[0].last_step == 7


@pytest.mark.parametrize("handled", [False, True])
def test_an_error_ends_the_run_and_goes_where_it_goes(tmp_path: Path, handled: bool) -> None:
    setting = Setting()
    setting.handler(tmp_path / "run.db")
    caught: list[BaseException] = []
    if handled:
        setting.trainer.add_event_handler(
            engines.Events.EXCEPTION_RAISED, lambda engine, error: caught.append(error)
        )

    @setting.trainer.on(engines.Events.ITERATION_STARTED(once=6))
    def fail() -> None:
        raise RuntimeError("no more data")

    if handled:
        setting.trainer.run(DATA, max_epochs=3)
        assert [str(error) for error in caught] == ["no more data"]
    else:
        with pytest.raises(RuntimeError, match="no more data"):
            setting.trainer.run(DATA, max_epochs=3)
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["ended"]["error"] == "RuntimeError: no more data"


def test_a_finding_can_stop_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding("diverged", "error", "The loss has diverged.", "Lower the rate.")
    monkeypatch.setattr(Diagnosis, "findings", property(lambda self: (found,)))
    setting = Setting()
    setting.handler(tmp_path / "run.db", on_finding="stop")
    assert setting.trainer.run(DATA, max_epochs=3).iteration == 1
