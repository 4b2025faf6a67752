"""What may be said of a run as a whole."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.doctor.verdict import EARLY, examinations, verdict_of

WARNING = {"code": "dead-units", "severity": "warning"}
NOTE = {"code": "unused-module", "severity": "info"}
LITTLE = {"code": "not-learning", "severity": "info"}
LITTLE_SAID = (
    "little was learnt, and nothing says why: the task may be that noisy, or it is a fault"
)
TRAINED = {
    "diagnosis": {"checks": 40},
    "totals": {"steps": 300, "backwards": 300},
    "losses": ["train.py:3"],
}


def judged(info: dict[str, Any], *findings: dict[str, Any], state: str = "finished") -> Any:
    ranks = [SimpleNamespace(state=state, last_step=299)]
    run: Any = SimpleNamespace(info=info, findings=findings, ranks=ranks)
    return verdict_of(run)


@pytest.mark.parametrize(
    ("info", "findings", "text", "severity"),
    [
        (TRAINED, (), "no problems found (40 checks, 300 steps)", "good"),
        (TRAINED, (NOTE,), "no problems found (40 checks, 300 steps; 1 note)", "info"),
        (TRAINED, (WARNING, NOTE), "1 warning, 1 note", "warning"),
        (
            TRAINED,
            (LITTLE,),
            f"not judged: {LITTLE_SAID} (40 checks, 300 steps; 1 note)",
            "info",
        ),
        (TRAINED, (WARNING, LITTLE), "1 warning, 1 note", "warning"),
        (
            TRAINED | {"examined": [{"outcome": "fine"}, {"outcome": "not applicable"}]},
            (),
            "no problems found (40 checks, 300 steps, 1 examination)",
            "good",
        ),
        ({}, (), "not judged: no diagnosis is recorded in this run", "quiet"),
        (TRAINED | {"losses": []}, (), "not judged: no loss was seen", "quiet"),
        (TRAINED | {"clock": "forward"}, (), "not judged: no backward pass was seen", "quiet"),
        (TRAINED | {"totals": {"steps": 0}}, (), "not judged: no step was recorded", "quiet"),
        (
            TRAINED | {"totals": {"steps": 8, "backwards": 8}},
            (),
            "too early to tell: 8 steps, and nothing is wrong in them so far",
            "quiet",
        ),
        (
            TRAINED | {"ended": {"error": "ValueError: no", "interrupted": False}},
            (),
            "crashed: the script ended with ValueError: no",
            "error",
        ),
        (
            TRAINED | {"ended": {"error": "ValueError: no", "interrupted": False}},
            (WARNING,),
            "crashed: the script ended with ValueError: no; 1 warning",
            "error",
        ),
        (
            TRAINED | {"ended": {"error": "KeyboardInterrupt", "interrupted": True}},
            (),
            (
                "interrupted: by Ctrl-C after 300 steps; no problems found before "
                "(40 checks, 300 steps)"
            ),
            "quiet",
        ),
    ],
)
def test_states(
    info: dict[str, Any], findings: tuple[dict[str, Any], ...], text: str, severity: str
) -> None:
    verdict = judged(info, *findings)
    assert str(verdict) == text
    assert verdict.severity == severity
    assert verdict.is_fine == text.startswith("no problems found")


def test_nothing_is_called_fine_while_it_runs_or_after_a_kill() -> None:
    running = judged(TRAINED, state="open")
    assert str(running) == "running: no problems found so far (40 checks, 300 steps)"
    killed = judged(TRAINED, state="died")
    assert str(killed).startswith("interrupted: its process ended without closing the run")
    assert not running.is_fine
    assert not killed.is_fine
    early = judged(TRAINED | {"totals": {"steps": 3, "backwards": 3}}, state="open")
    assert str(early) == "running: too early to tell after 3 steps"


@pytest.mark.parametrize("examined", [None, 3, "odd", {"results": 4}, [1, None, {"outcome": []}]])
def test_odd_records_of_examinations_count_as_none(examined: Any) -> None:
    assert examinations({"examined": examined}) == 0


def trained(path: Path, steps: int, *, crash: bool = False) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.randn(512, 4)
    with nethook.watch(model, optimizer, to=path) as watch:
        watch.be_silent()
        for step in range(steps):
            batch = data[16 * step % 512 :][:16]
            loss = (model(batch) - batch.sum(1, keepdim=True)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if crash:
            raise ValueError("no such\nfile")


def test_of_real_runs(tmp_path: Path) -> None:
    trained(tmp_path / "long.db", EARLY + 10)
    with nethook.open_run(tmp_path / "long.db") as run:
        assert verdict_of(run).state == "no problems found"
        assert f"{EARLY + 10} steps" in str(verdict_of(run))
    trained(tmp_path / "short.db", EARLY - 1)
    with nethook.open_run(tmp_path / "short.db") as run:
        assert verdict_of(run).state == "too early to tell"
    with pytest.raises(ValueError, match="no such"):
        trained(tmp_path / "crash.db", EARLY, crash=True)
    with nethook.open_run(tmp_path / "crash.db") as run:
        assert str(verdict_of(run)) == "crashed: the script ended with ValueError: no such"
