"""The callback in a real agent of Stable-Baselines3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nethook
from nethook.doctor.finding import Finding
from nethook.watching.diagnosis import Diagnosis

sb3 = pytest.importorskip(
    "stable_baselines3", reason="Stable-Baselines3 is in the environment of `make trainers`."
)

from nethook.sb3 import NethookCallback  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def agent() -> Any:
    return sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, n_epochs=2, seed=0, device="cpu")


def test_a_training_is_one_run_with_the_agents_numbers(tmp_path: Path) -> None:
    callback = NethookCallback(tmp_path / "run.db")
    model = agent()
    model.learn(192, callback=callback)
    assert callback.path == tmp_path / "run.db"
    assert not nethook.audit(model.policy).ours
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == 6  # 3 rollouts of 64 steps, 2 epochs of one batch
        logged = run.scalars["trainer/train/loss"]
        assert logged.value[-1] == pytest.approx(model.logger.name_to_value["train/loss"])
        assert run.loss().last == pytest.approx(logged.value[-1], rel=1e-5)
        assert run.scalars["trainer/timesteps"].value.tolist() == [0, 64, 128, 192]


def test_a_loaded_agent_goes_on_in_its_run(tmp_path: Path) -> None:
    model = agent()
    model.learn(64, callback=NethookCallback(tmp_path / "run.db"))
    model.save(tmp_path / "agent.zip")
    loaded = sb3.PPO.load(tmp_path / "agent.zip", env=model.get_env(), device="cpu")
    other = NethookCallback(tmp_path / "other.db")
    loaded.learn(64, callback=other, reset_num_timesteps=False)
    assert other.path == tmp_path / "run.db"
    assert not (tmp_path / "other.db").exists()
    with nethook.open_run(tmp_path / "run.db") as run:
        assert len(run.info["sessions"]) == 2
        assert run.ranks[0].last_step == 3


def test_an_agent_that_learns_anew_has_a_run_of_its_own(tmp_path: Path) -> None:
    model = agent()
    model.learn(64, callback=NethookCallback(tmp_path / "first.db"))
    model.learn(64, callback=NethookCallback(tmp_path / "second.db"))
    with nethook.open_run(tmp_path / "second.db") as run:
        assert run.info["totals"]["steps"] == 2


def test_a_finding_can_stop_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding("diverged", "error", "The loss has diverged.", "Lower the rate.")
    monkeypatch.setattr(Diagnosis, "findings", property(lambda self: (found,)))
    model = agent()
    model.learn(192, callback=NethookCallback(tmp_path / "run.db", on_finding="stop"))
    assert model.num_timesteps == 1
