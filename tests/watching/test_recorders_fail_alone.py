"""An error in any function of the loss record or the flight recorder: training is as without."""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.runs import names
from nethook.watching.fail_open import WatchWarning, contained
from nethook.watching.watch import watch

WATCHING = Path(nethook.__file__).parent / "watching"
# Replaying is done later, on its own; `values` is a part of every step.
ELSEWHERE = {"__init__", "replay_ops", "replaying", "values"}
MODULES = [
    f"nethook.watching.{path.parent.name}.{path.stem}"
    for path in sorted([*WATCHING.glob("losses/*.py"), *WATCHING.glob("flight/*.py")])
    if path.stem not in ELSEWHERE
] + ["nethook.stats.transfers"]


def functions() -> list[str]:
    """Every function and method of these modules, as `module:Class.method`."""
    found = []
    for module in map(importlib.import_module, MODULES):
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(value):
                found.append(f"{module.__name__}:{name}")
            elif inspect.isclass(value):
                found += [
                    f"{module.__name__}:{name}.{method}"
                    for method, each in vars(value).items()
                    if inspect.isfunction(each) and each.__module__ == module.__name__
                ]
    return found


# Not on the way of the training below: other devices and kinds of values, what only a replay
# needs, rules for other operations; and what cleans up after a failure.
NOT_ON_THE_WAY = {
    "flight.recorder:Flight._is_fault",
    "flight.recorder:Flight._late_loss",
    "flight.recorder:Flight._report_late",
    "flight.recorder:Flight.device_flags",
    # Steps in which nothing is due: see test_quiet_steps.py.
    "losses.recorder:Losses.forget",
    "flight.ring:PlainCall.hold",
    "flight.loss:LossKeeper.keep_plainly",
    "flight.ring:PlainCall.kept_in",
    "flight.ring:_autocast",
    "flight.recorder:Flight._let_go",
    "flight.recorder:Flight._step_was_skipped",
    "flight.recorder:Flight.turn_off",
    "flight.recorder:_gradients_finite",
    "flight.file:_read",
    "flight.file:_read_all",
    "flight.file:load",
    "flight.loss:compute_again",
    "flight.culprit:_behind",
    "flight.culprit:_first_tensor",
    "flight.culprit:_loss",
    "flight.culprit:_reason",
    "flight.culprit:_somewhere",
    "flight.ring:set_random_states",
    "losses.recorder:Losses._due",
    # A model that is not called with a tensor first, and a loss that does not tell its samples: see
    # losses/test_samples.py and losses/test_recorder.py.
    "losses.recorder:Losses._note_length",
    "losses.recorder:Losses._given_samples",
    "losses.samples:length_of",
    "losses.recorder:Losses._poll",
    "losses.recorder:Losses.turn_off",
    "losses.called_from:CalledFrom.turn_off",
    "losses.graph:_without_scale",
    # Losses of other kinds: see losses/test_kinds.py.
    "losses.kinds:_is_divergence",
    "losses.kinds:_is_product",
    "losses.kinds:_makes_a_table",
    "losses.kinds:_narrowed",
    "losses.kinds:_without_padding",
    # Loops of libraries: see losses/test_loops.py.
    "losses.loops:Loops.called",
    "losses.tally:_is_mean",
    "losses.tally:filled",
    "losses.tally:packed",
    "nethook.stats.transfers:Transfers.keep",
    "nethook.stats.transfers:fetched",
}


def on_the_way(place: str) -> bool:
    short = place.removeprefix("nethook.watching.")
    # What computes values of summands, and looks for padding, depends on the kind of loss: see
    # losses/test_parts.py and losses/test_padding.py.
    by_kind = short.startswith(("flight.reasons", "losses.parts:_", "losses.padding:_"))
    is_elsewhere = short in NOT_ON_THE_WAY or by_kind
    return "__" not in short and not is_elsewhere


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.0)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x, times=1):
        return times * self.fc2(torch.log(self.drop(self.fc1(x)).square()))


LOSSES = [
    lambda model, out, y, soft: F.cross_entropy(out, y, label_smoothing=0.1) / 2,
    lambda model, out, y, soft: F.mse_loss(out, soft) + model.fc1.weight.square().sum(),
    lambda model, out, y, soft: F.cross_entropy(out, soft) + F.cross_entropy(out, y),
    lambda model, out, y, soft: (
        F.cross_entropy(out.softmax(1), soft) + F.l1_loss(out[:, :1], soft[:, 0])
    ),
    lambda model, out, y, soft: F.cross_entropy(out, y),
]


def train(path: Path | None) -> dict[str, torch.Tensor]:
    """A few steps of several losses, evaluations between them, and a NaN at the end."""
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    watching = None if path is None else watch(model, optimizer, to=path, budget=None)
    for step in range(5):
        x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
        if step == 4:
            model.drop.p = 0.999999  # everything is dropped, and the log of 0 is −Inf
        optimizer.zero_grad()
        output = model(x) if step < 4 else model(x, times=1)  # more than one tensor is given
        soft = F.one_hot(y, 3).float()
        LOSSES[step](model, output, y, soft).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(x), y)
        model.train()
    if watching is not None:
        watching.close()
    return model.state_dict() | {"random": torch.get_rng_state()}


@pytest.fixture(scope="module")
def unwatched() -> dict[str, torch.Tensor]:
    return train(None)


class Injected(Exception):
    pass


def inject(place: str, patch: pytest.MonkeyPatch) -> list[str]:
    """Makes a function raise, wherever it was imported to; the list says when it did."""
    raised: list[str] = []

    def broken(*args: Any, **kwargs: Any) -> Any:
        raised.append(place)
        raise Injected(place)

    module_name, _, name = place.partition(":")
    module = sys.modules[module_name]
    owner, _, method = name.partition(".")
    if method:
        # What contains errors goes on doing so.
        guarded = hasattr(vars(getattr(module, owner))[method], "__wrapped__")
        patch.setattr(getattr(module, owner), method, contained(broken) if guarded else broken)
        return raised
    original = getattr(module, name)
    for each in list(sys.modules.values()):
        if getattr(each, "__name__", "").startswith("nethook.watching"):
            for known, value in list(vars(each).items()):
                if value is original:
                    patch.setattr(each, known, broken)
    return raised


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(
        torch.equal(first[name].nan_to_num(nan=9e9), second[name].nan_to_num(nan=9e9))
        for name in first
    )


# With one of these the watch itself is broken, which cannot know that only a part of it is.
ENTRIES = (
    "step_begins", "step_ended", "was_easy", "end_step", "Flight.call_ends", "Flight.flag",
    "Losses.call_begins",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("place", list(filter(on_the_way, functions())))
def test_one_function_fails(place, unwatched, tmp_path, monkeypatch):
    raised = inject(place, monkeypatch)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", WatchWarning)
        state = train(tmp_path / "run.db")
    assert raised
    assert same(state, unwatched)
    assert [warning.category for warning in said] == [WatchWarning]
    monkeypatch.undo()
    with nethook.open_run(tmp_path / "run.db") as run:
        failed = [event for event in run.events if event.kind == names.FAILED]
        if not place.endswith(ENTRIES):
            assert int(run.series(names.LOOP, names.BACKWARDS)["count"].sum()) == 5
    assert failed  # one, or one of each part where a function serves both
    assert all("Injected" in event.message for event in failed)


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_the_other_part_goes_on(tmp_path, monkeypatch):
    inject("nethook.watching.losses.record:analyse", monkeypatch)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always", WatchWarning)
        train(tmp_path / "run.db")
    with nethook.open_run(tmp_path / "run.db") as run:
        kinds = [event.kind for event in run.events]
        assert kinds.count(names.FAILED) == 1
        assert kinds.count(names.NON_FINITE) == 1
        assert len(run.losses) == 0
