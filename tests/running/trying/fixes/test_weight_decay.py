"""A weaker weight decay."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from nethook.running.trying.change import Change
from nethook.running.trying.comparing import compare
from nethook.running.trying.fixes import weight_decay
from nethook.runs.names import GROUPS
from tests.running.trying.trials import both, with_fault

FINDING = {"code": "weight-decay-too-strong"}


def run_with(decay: float) -> SimpleNamespace:
    groups = [{"weight_decay": decay}, {"weight_decay": 0}]
    return SimpleNamespace(events=[SimpleNamespace(kind=GROUPS, data={"groups": groups})])


def test_the_decay_is_a_hundredth_and_at_most_a_hundredth() -> None:
    for decay, said in ((0.5, "weight decay 0.5 → 0.005"), (10.0, "weight decay 10 → 0.01")):
        change = weight_decay.propose(FINDING, run_with(decay))  # type: ignore[arg-type]
        assert change is not None
        assert change.said == said
    assert weight_decay.propose(FINDING, run_with(0.0)) is None  # type: ignore[arg-type]


def test_a_decay_is_tried(tmp_path: Path) -> None:
    script = with_fault(("lr=0.1", "lr=0.1, weight_decay=5.0"))
    change = Change("weight_decay", "weight-decay-too-strong", "", {"most": 0.01})
    before, after = both(tmp_path, script, change, steps=60)
    assert after.end.changed == 60
    assert compare(before.losses, after.losses, "train").helped
