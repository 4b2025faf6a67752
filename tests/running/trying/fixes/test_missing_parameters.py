"""Parameters that no optimizer held."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from nethook.running.trying.change import Change
from nethook.running.trying.comparing import compare
from nethook.running.trying.fixes import missing_parameters
from tests.running.trying.trials import both, with_fault


@pytest.mark.parametrize("code", missing_parameters.CODES)
def test_each_finding_gets_them(code: str) -> None:
    change = missing_parameters.propose({"code": code}, SimpleNamespace())  # type: ignore[arg-type]
    assert change is not None
    assert "all parameters" in change.said


LAST_ONLY = (("model.parameters()", "model[2].parameters()"), ("lr=0.1", "lr=0.02"))
# Layers in a Python list, of which the module does not know.
UNREGISTERED = (
    (
        "model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))",
        (
            "class Net(nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        self.layers = [nn.Linear(8, 16), nn.Linear(16, 16)]\n"
            "        self.last = nn.Linear(16, 1)\n"
            "    def forward(self, x):\n"
            "        for layer in self.layers: x = layer(x).tanh()\n"
            "        return self.last(0.05 * x)\n"
            "model = Net()"
        ),
    ),
)
SCHEDULED = (
    *LAST_ONLY,
    ("def batches", "plan = torch.optim.lr_scheduler.StepLR(optimizer, 1000)\ndef batches"),
    ("optimizer.step()", "optimizer.step(); plan.step()"),
)


@pytest.mark.parametrize("fault", [LAST_ONLY, UNREGISTERED, SCHEDULED])
def test_they_are_trained(tmp_path: Path, fault: tuple[tuple[str, str], ...]) -> None:
    change = Change("missing_parameters", "optimizer-misses-parameters")
    before, after = both(tmp_path, with_fault(*fault), change, steps=70)
    assert (after.end.how, after.end.error, after.end.changed) == ("steps", "", 1)
    compared = compare(before.losses, after.losses, "train")
    assert compared.train is not None
    assert compared.train.after < compared.train.before


def test_nothing_is_done_where_none_is_missing(tmp_path: Path) -> None:
    change = Change("missing_parameters", "optimizer-misses-parameters")
    before, after = both(tmp_path, with_fault(), change, steps=10)
    assert after.end.changed == 0
    assert compare(before.losses, after.losses, "train").helped is False
