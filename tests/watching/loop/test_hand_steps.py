"""Steps that no optimizer of torch makes have numbers of weights, gradients and updates."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.watching.fail_open import WatchWarning
from nethook.watching.loop.hand_steps import HandSteps

STEPS, RATE = 6, 0.1
CLEARED: dict[str, Callable[[nn.Module], None]] = {
    "zero_grad": lambda model: model.zero_grad(),
    "None": lambda model: [setattr(p, "grad", None) for p in model.parameters()],
    "zeroed": lambda model: [p.grad.zero_() for p in model.parameters() if p.grad is not None],
}


def made() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def norm(tensors: list[torch.Tensor]) -> float:
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors))


def means(run: Any, quantity: str) -> list[tuple[int, int, float]]:
    """The mean of the first weight in each window, with its first step and how many it saw."""
    series = run.series("0.weight", quantity)
    shown = zip(series.first_step, series["mean"], series.seen, series.steps, strict=True)
    # A window has several steps where the writer's thread is behind; the unseen ones come first.
    return [(int(at + all_ - seen), int(seen), mean) for at, mean, seen, all_ in shown if seen]


def trained(
    model: nn.Module, clear: Callable[[nn.Module], None], *, before: bool = False, passes: int = 1
) -> list[dict[str, float]]:
    """What a loop that moves weights by hand has seen of them itself, step by step."""
    seen = []
    for _ in range(STEPS):
        loss = model(torch.randn(5, 3)).square().mean()
        if before:
            clear(model)
        for _ in range(passes - 1):
            loss.backward(retain_graph=True)
        loss.backward()
        weights = [p.detach().clone() for p in model.parameters()]
        grads = [p.grad.clone() for p in model.parameters()]
        with torch.no_grad():
            for p in model.parameters():
                p -= RATE * p.grad
        updates = [p.detach() - old for p, old in zip(model.parameters(), weights, strict=True)]
        if not before:
            clear(model)
        seen.append(
            {
                "grad_norm": norm(grads),
                "update_ratio": norm(updates) / norm(weights),
                "params": float(weights[0].double().mean()),
                "param_grads": float(grads[0].double().mean()),
                "updates": float(updates[0].double().mean()),
            }
        )
    return seen


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("clear", CLEARED)
def test_numbers_are_those_of_the_loop(
    tmp_path: Path, clear: str, before: bool, passes: int
) -> None:
    model = made()
    with nethook.watch(model, to=tmp_path / "run.db", budget=None):
        seen = trained(model, CLEARED[clear], before=before, passes=passes)
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["clock"] == "backward"
        # A loop that clears unseen is known as such after the first step that is measured.
        first = 2 if not before and clear != "zero_grad" else 1
        for quantity, since in (("params", 1), ("updates", 1), ("param_grads", first)):
            told = means(run, quantity)
            assert sum(number for _, number, _ in told) == STEPS - since
            for first_step, number, mean in told:
                steps = [seen[first_step + more][quantity] for more in range(number)]
                assert mean == pytest.approx(sum(steps) / number, rel=1e-4)
        for name in ("grad_norm", "update_ratio"):
            curve = run.scalars[name]
            by_step = dict(zip(curve.step.tolist(), curve.value.tolist(), strict=True))
            expected = {step: seen[step][name] for step in range(first, STEPS)}
            assert {step: by_step[step] for step in expected} == pytest.approx(expected, rel=1e-5)


def test_frozen_weights_are_none_of_them(tmp_path: Path) -> None:
    model = made()
    model[0].requires_grad_(False)
    with nethook.watch(model, to=tmp_path / "run.db", budget=None):
        for _ in range(STEPS):
            model.zero_grad()
            model(torch.randn(5, 3)).square().mean().backward()
            with torch.no_grad():
                for p in model[2].parameters():
                    p -= RATE * p.grad
    with nethook.open_run(tmp_path / "run.db") as run:
        kept = {(info.address, info.quantity) for info in run.catalogue}
        assert ("2.weight", "updates") in kept
        assert ("0.weight", "updates") not in kept


def test_weights_that_nobody_moves_have_no_updates(tmp_path: Path) -> None:
    model = made()
    with nethook.watch(model, to=tmp_path / "run.db", budget=None):
        for _ in range(STEPS):
            model.zero_grad()
            model(torch.randn(5, 3)).square().mean().backward()
    with nethook.open_run(tmp_path / "run.db") as run:
        assert not [info for info in run.catalogue if info.quantity == "updates"]


def test_an_optimizer_that_comes_later_takes_over(tmp_path: Path) -> None:
    model = made()
    with nethook.watch(model, to=tmp_path / "run.db", budget=None):
        trained(model, CLEARED["zero_grad"], before=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(5, 3)).square().mean().backward()
            optimizer.step()
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["clock"] == "optimizer"
        measured = sum(seen for _, seen, _ in means(run, "updates"))
        assert measured == run.info["totals"]["steps"] - 1  # each once


def test_it_costs_what_the_budget_allows(tmp_path: Path) -> None:
    model = made()
    with nethook.watch(model, to=tmp_path / "run.db") as watch:
        for _ in range(400):
            model.zero_grad()
            model(torch.randn(5, 3)).square().mean().backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= RATE * p.grad
        assert watch._session.schedule.budget.every > 1
    with nethook.open_run(tmp_path / "run.db") as run:
        updates = run.series("0.weight", "updates")
        assert 0 < updates.seen.sum() < 399


METHODS = [name for name, each in vars(HandSteps).items() if inspect.isfunction(each)]


@pytest.mark.parametrize("name", sorted({*METHODS} - {"__init__"}))
def test_an_error_in_a_function_stays_inside(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, watched = made(), made()
    # A loop that clears gradients by itself has them read after each pass, another before that.
    clear = CLEARED["None" if name == "backward_ended" else "zero_grad"]
    expected = trained(alone, clear)

    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("injected")

    torch.manual_seed(0)
    made()  # the same random numbers as above
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", WatchWarning)
        with nethook.watch(watched, to=tmp_path / "run.db", budget=None):
            monkeypatch.setattr(HandSteps, name, broken)
            assert trained(watched, clear) == expected
    monkeypatch.undo()
    assert [warning.category for warning in told] == [WatchWarning]
    with nethook.open_run(tmp_path / "run.db") as run:
        assert [event.message for event in run.events if event.kind == "watch-failed"]
