"""A watched run is bit for bit the unwatched one, whatever the loop."""

from __future__ import annotations

import pytest
import torch

import nethook
from tests.watching.loops import LOOPS, unwatched

pytestmark = [
    pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def same(a, b):
    return len(a) == len(b) and all(
        torch.equal(x, y) if isinstance(x, torch.Tensor) else repr(x) == repr(y)
        for x, y in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("name", LOOPS)
def test_fifty_steps_are_the_same_to_the_last_bit(name, tmp_path):
    steps = 6 if name.startswith("workers") else 50
    torch.manual_seed(0)
    alone = LOOPS[name](unwatched, steps)
    watches = []

    def start(model, optimizer):
        watches.append(nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None))
        return watches[0]

    torch.manual_seed(0)
    watched = LOOPS[name](start, steps)
    assert same(alone, watched)
    run = nethook.open_run(tmp_path / "run.db")
    assert not [event for event in run.events if event.kind == "watch-failed"]
    expected = {"lbfgs": steps // 3}.get(name, steps)
    assert run.info["totals"]["steps"] == expected
    assert not nethook.audit(next(iter(watches[0]._session.models().values()))).ours


def test_the_comparison_can_fail():
    assert not same([torch.ones(2)], [torch.tensor([1.0, 1.0 + 1e-7])])
    assert not same([torch.ones(2)], [])
