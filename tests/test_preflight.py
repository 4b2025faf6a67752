"""`nethook.checkup` joins two rooms: experiments of `examining`, recorded by a watch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import nethook
from nethook.examining.checkup.checkup import check_up
from nethook.preflight import checkup
from nethook.watching.watch import Watch, watch


def case() -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor], nn.Module]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    return model, (torch.randn(16, 6), torch.randint(3, (16,))), nn.CrossEntropyLoss()


def test_the_public_function_is_this_one() -> None:
    assert nethook.checkup is checkup


def test_the_watch_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    model, batch, loss_fn = case()
    checkup(model, batch, loss_fn, steps=12)
    assert capsys.readouterr() == ("", "")


def test_what_records_is_handed_in_and_read_before_its_file_goes() -> None:
    paths: list[Path] = []

    def record(
        model: nn.Module, optimizer: torch.optim.Optimizer, path: Path, *, examine: bool
    ) -> Watch:
        paths.append(path)
        assert examine == (path.name == "look.db")
        begun = watch(model, optimizer, path, budget=None, batches=1, examine=examine)
        begun.be_silent()
        return begun

    model, batch, loss_fn = case()
    mine = check_up(model, batch, loss_fn, None, steps=12, record=record)
    assert [path.name for path in paths] == ["look.db", "trial.db"]
    assert not any(path.exists() for path in paths)
    assert repr(mine) == repr(checkup(model, batch, loss_fn, steps=12))


def test_the_experiments_know_nothing_of_watching() -> None:
    code = (
        "import sys, nethook.examining.checkup.checkup\n"
        "print(*[name for name in sys.modules if name.startswith('nethook.watching')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
