"""`nethook replay`: the operation that made the first NaN, as it was found when it happened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import nethook
from tests.cli.command import run as called

SCRIPT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)

    def forward(self, x):
        return torch.log(self.fc(x))

torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in torch.randn(3, 8, 2):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
"""
LINE = 1 + SCRIPT.splitlines().index("        return torch.log(self.fc(x))")


class Roots(nn.Module):
    def __init__(self, *, prints: bool = False) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 1)
        self.prints = prints

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.prints:
            print("called")
        return torch.sqrt(self.fc(x))


def trained(path: Path, *, prints: bool = False, steps: int = 2) -> None:
    torch.manual_seed(0)
    model = Roots(prints=prints)
    with nethook.watch(model, torch.optim.SGD(model.parameters(), 0.1), to=path) as watch:
        watch.be_silent()
        for x in torch.randn(steps, 8, 2):
            model(x).mean().backward()


def test_the_operation_its_line_and_what_it_was_given(tmp_path: Path) -> None:
    trained(tmp_path / "a.db")
    done = called("replay", tmp_path / "a.db")
    assert done.exit_code == 0
    assert "operation: /sqrt#0 (forward)" in done.output
    assert "test_replay.py:" in done.output
    assert "made: float32[8, 1]" in done.output
    data = json.loads(called("replay", tmp_path / "a.db", "--json").output)
    assert data["non_finite"]["replayed"]["operation"] == "/sqrt#0"


def test_a_forward_that_prints_is_not_run_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path / "a.db", prints=True)
    assert capsys.readouterr().out == "called\n" * 2  # once per step, as without nethook
    done = called("replay", tmp_path / "a.db")
    assert done.exit_code == 1
    assert "operation: not known (its forward prints" in done.output


def test_a_run_without_a_nan(tmp_path: Path) -> None:
    with nethook.watch(nn.Linear(2, 2), to=tmp_path / "a.db") as watch:
        watch.be_silent()
    done = called("replay", tmp_path / "a.db")
    assert done.exit_code == 0
    assert done.output == "no NaN and no infinity was recorded in this run\n"
    assert called("replay", tmp_path / "none.db").exit_code == 2


def test_rerun_executes_the_script_after_saying_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "nethook", "run", "--to", "a.db", "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "/log#0 at" in done.stderr
    shown = called("replay", "a.db", "--rerun")
    assert "executing" in shown.stderr
    assert "train.py again, into a-rerun.db" in shown.stderr
    assert f"train.py:{LINE} in forward" in shown.output
    assert Path("a-rerun.db").exists()


def test_rerun_refuses_what_it_cannot_execute_as_it_was(tmp_path: Path) -> None:
    trained(tmp_path / "a.db")
    from nethook.runs.writing.writer import RunWriter

    with RunWriter(tmp_path / "a.db", resume=True) as writer:
        writer.info(command=["python", "no/such/script.py"])
    done = called("replay", tmp_path / "a.db", "--rerun")
    assert done.exit_code == 2
    assert "which is not there" in done.stderr
    with RunWriter(tmp_path / "a.db", resume=True) as writer:
        writer.info(command=["python", __file__, "--token", "***"])
    done = called("replay", tmp_path / "a.db", "--rerun")
    assert done.exit_code == 2
    assert "masked" in done.stderr
