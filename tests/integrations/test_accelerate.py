"""The tracker in a real `Accelerator`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from torch import nn

import nethook
from nethook.accelerate import NethookTracker


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    yield
    for state in (AcceleratorState, GradientState, PartialState):  # they are global
        state._reset_state()


@pytest.mark.parametrize("config", [None, {"lr": 0.1, "name": "small"}])
def test_a_training_is_one_run(tmp_path: Path, config: dict[str, object] | None) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    tracker = NethookTracker(model, optimizer, tmp_path / "run.db", budget=None)
    accelerator = Accelerator(log_with=[tracker], cpu=True, gradient_accumulation_steps=2)
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.init_trackers("test", config=config)
    for step in range(8):
        with accelerator.accumulate(model):
            loss = model(torch.randn(4, 3)).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.log({"loss": loss.item(), "what": "text"}, step=step)
    accelerator.end_training()
    accelerator.end_training()  # a second time is harmless
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == 4
        assert len(run.scalars["trainer/loss"]) == 8
        assert run.info.get("config") == config
    assert not nethook.audit(accelerator.unwrap_model(model)).ours
