"""Findings while a run is written, and at its end."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import nethook
from nethook.doctor import diagnose as doctor
from tests.doctor.runs import train


def test_live_and_later_diagnosis_agree(tmp_path: Path) -> None:
    path = train(tmp_path / "run.db", wipe=True)
    with nethook.open_run(path) as run:
        assert list(run.findings) == [each.to_dict() for each in nethook.diagnose(run)]
        assert [each["code"] for each in run.findings] == ["gradient-wiped"]
        assert run.info["diagnosis"]["failed"] == []


def test_a_healthy_run_was_looked_at(tmp_path: Path) -> None:
    path = train(tmp_path / "run.db", steps=80)
    with nethook.open_run(path) as run:
        assert run.findings == ()
        assert run.info["diagnosis"]


def test_findings_can_be_asked_for_while_it_trains(tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    with nethook.watch(model, to=tmp_path / "run.db") as watch:
        assert watch.findings == ()
        for _ in range(60):
            model(torch.randn(8, 4)).sum().backward()
        assert [each.code for each in watch.findings] == ["missing-step"]
    assert [each.code for each in watch.findings] == ["missing-step"]


def test_an_error_in_the_doctor_never_reaches_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the doctor is ill")

    monkeypatch.setattr(doctor, "examine", broken)
    path = train(tmp_path / "run.db", steps=5)
    with nethook.open_run(path) as run:
        assert run.findings == ()
        assert "diagnosis" not in run.info
        told = [event for event in run.events if event.kind == "watch-failed"]
        assert [event.message for event in told] == ["RuntimeError: the doctor is ill"]
