"""`nethook.watch` as a session uses it: which file a model gets, and when its run ends."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import nn

from nethook.hooks.process.optimizers import optimizers_holding
from nethook.running.detecting.watches import Watches, _free_paths, _resumed
from nethook.running.options import RunOptions
from nethook.runs.reading.run import open_run
from nethook.watching.loop import optimizers as loop_optimizers


def step(model: nn.Module, count: int = 1) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(count):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).square().sum().backward()
        optimizer.step()


def ids(*models: nn.Module) -> frozenset[int]:
    return frozenset(id(parameter) for model in models for parameter in model.parameters())


def test_paths_are_numbered_before_the_suffix() -> None:
    names = [path.name for path in islice(_free_paths(Path("runs/a.b.db")), 3)]
    assert names == ["a.b.db", "a.b-2.db", "a.b-3.db"]


@pytest.mark.parametrize(
    ("dropped", "asked", "said"),
    [
        (None, 3, "."),
        ((3, 3), 3, "; the earlier record of step 3 was dropped."),
        ((3, 1500), 3, "; the earlier record of steps 3 to 1,500 was dropped."),
        (None, None, ", after its last one. Was the checkpoint of another step? Type --step."),
    ],
)
def test_what_is_said_of_a_run_that_goes_on(
    dropped: tuple[int, int] | None, asked: int | None, said: str
) -> None:
    assert _resumed(Path("runs/a.db"), 1000, dropped, asked) == f"Resumed a.db at step 1,000{said}"


def test_a_model_that_comes_later_has_a_run_of_its_own(tmp_path: Path) -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 4)
    watches = Watches(RunOptions(str(tmp_path / "a.db"), name="mine"), {"first": first})
    step(first, 2)
    watches.add({"second": second})
    watches.settle(ids(second))  # no optimizer holds the first any more
    step(second, 3)
    watches.close()
    assert watches.paths == [tmp_path / "a.db", tmp_path / "a-2.db"]
    assert (watches.problems, watches.notes, watches.left_alone) == ([], [], [])
    for path, steps in zip(watches.paths, (2, 3), strict=True):
        with open_run(path) as run:
            assert (run.info["name"], run.info["totals"]["steps"]) == ("mine", steps)
            assert run.ranks[0].state == "finished"


def test_a_model_that_was_only_called_leaves_no_run(tmp_path: Path) -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 4)
    watches = Watches(RunOptions(str(tmp_path / "a.db")), {"first": first})
    first(torch.ones(2, 3))
    watches.settle(ids(second))
    assert watches.paths == []
    watches.add({"second": second})
    step(second, 3)
    watches.close()
    assert watches.paths == [tmp_path / "a.db"]  # the name that was asked for
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]
    with open_run(tmp_path / "a.db") as run:
        assert run.info["totals"]["steps"] == 3


def test_the_only_run_is_kept_whatever_is_in_it(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    watches = Watches(RunOptions(str(tmp_path / "a.db")), {"model": model})
    model(torch.ones(2, 3))
    watches.close()
    assert watches.paths == [tmp_path / "a.db"]


def test_models_that_come_together_share_a_run(tmp_path: Path) -> None:
    models = {"one": nn.Linear(3, 2), "other": nn.Linear(3, 4)}
    watches = Watches(RunOptions(str(tmp_path / "a.db")), models)
    watches.settle(ids(models["one"]))  # one of them is trained on: the run goes on
    step(models["one"])
    watches.close()
    with open_run(tmp_path / "a.db") as run:
        assert sorted(run.info["models"]) == ["one", "other"]
        assert run.info["totals"]["steps"] == 1


@pytest.mark.parametrize("told", [True, False])
def test_optimizers_that_are_known_are_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """A look at every object of the process takes tens of milliseconds."""
    looked: list[object] = []

    def look(parameters: Iterable[torch.Tensor]) -> list[torch.optim.Optimizer]:
        looked.append(parameters)
        return optimizers_holding(parameters)

    monkeypatch.setattr(loop_optimizers, "optimizers_holding", look)
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    mine = [torch.optim.SGD([p], lr=0.1) for p in model.parameters()]
    stranger = torch.optim.SGD(other.parameters(), lr=0.1)
    watches = Watches(
        RunOptions(str(tmp_path / "a.db")),
        {"": model},
        [stranger, *mine, half_built()] if told else [],
    )
    (watch, _), *_ = watches._open
    model(torch.ones(2, 3)).sum().backward()
    for optimizer in (*mine, stranger):
        optimizer.step()
    # In the order of their making.
    assert list(watch._session.optimizers.by_name().values()) == mine
    assert len(looked) == (0 if told else 1)
    watches.close()
    with open_run(tmp_path / "a.db") as run:
        assert run.info["totals"]["steps"] == 1


def half_built() -> torch.optim.Optimizer:
    """An optimizer whose `__init__` has not come far."""
    optimizer = torch.optim.SGD.__new__(torch.optim.SGD)
    vars(optimizer)["param_groups"] = [{"lr": 0.1}]
    return optimizer


def test_a_file_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    for _ in range(2):
        model = nn.Linear(3, 2)
        watches = Watches(RunOptions(str(tmp_path / "a.db")), {"": model})
        step(model)
        watches.close()
    assert watches.paths == [tmp_path / "a-2.db"]


def test_the_run_of_another_model_is_not_gone_on_with(tmp_path: Path) -> None:
    options = RunOptions(str(tmp_path / "a.db"), resume=True)
    for width in (2, 5):
        model = nn.Linear(3, width)
        watches = Watches(options, {"": model})
        step(model)
        watches.close()
    assert watches.left_alone == [tmp_path / "a.db"]
    assert watches.paths == [tmp_path / "a-2.db"]
    (note,) = watches.notes
    assert note.startswith("a.db was left as it is: it is the run of another model (")
    assert note.endswith("This run is in a-2.db.")
