"""The checks of the self-test: they pass here, and fail where something is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import nethook
from nethook.selftest import checks
from nethook.selftest.checks import CHECKS, NotAskedError

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "STEPS", 8)
    monkeypatch.setattr(checks, "BUDGET_STEPS", 8)
    monkeypatch.setattr(checks, "BUDGET_TURNS", 1)


@pytest.mark.parametrize("name", ["private names of torch", "values", "bit-identity", "cost"])
def test_it_passes_here(name: str) -> None:
    (check,) = [check for check in CHECKS if check.name == name]
    text, numbers = check.ask(CPU)
    assert text
    assert isinstance(numbers, dict)


def test_a_run_is_recorded_and_diagnosed() -> None:
    text, numbers = checks.verdict(CPU)
    assert "8 steps" in text
    assert numbers["series"] > 20


def test_a_watch_that_draws_random_numbers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawing(folder: Path) -> Any:
        def watch(*_: object) -> Any:
            torch.rand(1)
            return nethook.trace(torch.nn.Identity())

        return watch

    monkeypatch.setattr(checks, "_watching", drawing)
    with pytest.raises(AssertionError, match="differ where nethook watches"):
        checks.bits(CPU)


def test_a_run_that_lacks_steps_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = checks.train
    monkeypatch.setattr(checks, "train", lambda device, steps, watching: real(device, 5, watching))
    with pytest.raises(AssertionError, match="5 of 8 steps"):
        checks.verdict(CPU)


def test_what_depends_on_another_device_is_not_asked() -> None:
    with pytest.raises(NotAskedError, match="only CUDA"):
        checks.waits(CPU)


def test_a_missing_kernel_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nethook.stats.native.kernel.functions", None)
    with pytest.raises(NotAskedError, match="not installed"):
        checks.kernel(CPU)
