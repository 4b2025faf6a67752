"""The operation that made the first NaN is found while the script runs; nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.watching import flight_cases as cases
from tests.watching.flight_runs import watched

COUNTED: list[int] = []


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        COUNTED.append(1)
        return torch.log(self.fc(x))


def _batches() -> list[Any]:
    return [(x, torch.zeros(8, 1)) for x in torch.randn(3, 8, 2)]


def _counting() -> cases.Case:
    torch.manual_seed(0)
    return cases.Case(Counting(), _batches())


@pytest.mark.parametrize(
    ("make", "operation"),
    [
        (cases.log_of_zero, "log"),
        (cases.half_overflow, "linear"),
        (cases.root_at_zero, "sqrt"),
        (cases.exploding_rnn, "rnn"),
    ],
)
def test_the_operation_and_its_line(make: Any, operation: str, tmp_path: Path) -> None:
    [event] = watched(make(), tmp_path / "run.db")
    replayed = event.data["replayed"]
    assert operation in replayed["operation"].lower(), replayed
    assert ".py:" in replayed["source"]
    assert replayed["reason"]


def test_hooks_of_others_are_not_run_again(tmp_path: Path) -> None:
    case = cases.log_of_zero()
    calls = []
    case.model.register_forward_hook(lambda *_: calls.append(1))
    [event] = watched(case, tmp_path / "run.db")
    assert "other code has hooks on it" in event.data["replayed"]["not_found"]
    assert len(calls) == len(case.batches)


def test_a_forward_that_counts_its_calls_in_a_global_is_left_as_it_was(tmp_path: Path) -> None:
    COUNTED.clear()
    [event] = watched(_counting(), tmp_path / "run.db")
    assert "writes" in event.data["replayed"]["not_found"]
    assert len(COUNTED) == 3


def test_steps_and_losses_are_those_of_the_script(tmp_path: Path) -> None:
    import nethook

    case = cases.log_of_zero()
    watched(case, tmp_path / "run.db")
    with nethook.open_run(tmp_path / "run.db") as run:
        totals = run.info["totals"]
    assert totals["steps"] == totals["forwards"] == totals["backwards"] == len(case.batches)


def test_a_model_that_opens_a_file_says_so(tmp_path: Path) -> None:
    class Opens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with Path(__file__).open():
                return torch.log(self.fc(x))

    torch.manual_seed(0)
    case = cases.Case(Opens(), _batches())
    [event] = watched(case, tmp_path / "run.db")
    assert "opens a file" in event.data["replayed"]["not_found"]
