"""A training that is examined is the same, bit for bit, whatever its model does."""

from __future__ import annotations

import contextlib
import copy
import inspect
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, spectral_norm
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import nethook
from nethook.examining import examine as running
from nethook.examining import keeping
from nethook.examining.experiment import Result, fine
from nethook.examining.experiments.network.can_learn import CanLearn
from nethook.torch_private import compiled_frames, function_modes
from nethook.watching.examinations.chosen import ChosenSteps
from nethook.watching.examinations.keeper import Keeper
from nethook.watching.examinations.recorder import Examinations
from nethook.watching.examinations.time_left import TimeLeft
from nethook.watching.fail_open import WatchWarning

STEPS = 5
GLOBAL = [0]


class Everything:
    """An experiment that runs the step in every way."""

    name = "everything"
    seen: ClassVar[list[Any]] = []

    def applies(self, rehearsal):
        return None

    def run(self, rehearsal):
        self.seen.append(rehearsal)
        rehearsal.run(outputs_only=True)
        rehearsal.run(training=False, outputs_only=True)
        if rehearsal.replayable:
            loss = rehearsal.run(grad=True).loss
            wanted = [one for one in rehearsal.model.parameters() if one.requires_grad]
            torch.autograd.grad(loss, wanted, allow_unused=True)
        return fine(self, replayable=rehearsal.replayable, why_not=rehearsal.why_not)


class Trained(Everything):
    name = "trained"
    wants_trained = True

    def run(self, rehearsal):
        rehearsal.run(outputs_only=True)
        return fine(self, weight=float(next(rehearsal.model.parameters()).double().sum()))


@pytest.fixture(autouse=True)
def experiments(monkeypatch) -> Iterator[None]:
    Everything.seen = []
    # A busy machine takes its time.
    monkeypatch.setattr("nethook.examining.limits.LEAST", 60.0)
    monkeypatch.setattr("nethook.examining.limits.MOST", 600.0)
    monkeypatch.setattr(running, "every_experiment", lambda: (Everything(), Trained()))
    yield
    assert function_modes() == 0


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(6, 5, generator=generator), torch.randint(0, 3, (6,), generator=generator))
        for _ in range(STEPS)
    ]


def plain(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    losses = []
    for x, y in batches():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
    return losses


Loop = Callable[[nn.Module, torch.optim.Optimizer], list[torch.Tensor]]


def trained(make: Callable[[], nn.Module], loop: Loop, path: Path | None) -> dict[str, Any]:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    GLOBAL[0] = 0
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    around: Any = contextlib.nullcontext()
    if path is not None:
        around = nethook.watch(model, optimizer, to=path, examine=True)
    with around:
        losses = loop(model, optimizer)
    return {
        "losses": torch.stack(losses),
        "state": {name: tensor.clone() for name, tensor in model.state_dict().items()},
        "grads": [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "numpy": np.random.get_state()[1].tolist(),
        "global": list(GLOBAL),
        "modes": [module.training for module in model.modules()],
        "calls": getattr(model, "calls", None),
        "grad": torch.is_grad_enabled(),
    }


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def info(path: Path) -> dict[str, Any]:
    with nethook.open_run(path) as run:
        assert [event for event in run.events if event.kind == "failed"] == []
        return dict(run.info)


class Hostile(nn.Module):
    """A network that does something else besides."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 8)
        self.last = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.besides(torch.relu(self.first(x))))

    def besides(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden


class Prints(Hostile):
    def besides(self, hidden):
        print("forward", tuple(hidden.shape))
        return hidden


class Opens(Hostile):
    def besides(self, hidden):
        with Path("log.txt").open("a") as log:
            log.write("forward\n")
        return hidden


class WritesGlobal(Hostile):
    def besides(self, hidden):
        GLOBAL[0] += 1
        return hidden * GLOBAL[0]


class Counts(Hostile):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def besides(self, hidden):
        self.calls += 1
        return hidden / self.calls


class Draws(Hostile):
    def besides(self, hidden):
        return F.dropout(hidden, 0.5) * random.random() * float(np.random.rand())


class HoldsGenerator(Hostile):
    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(3)

    def besides(self, hidden):
        return hidden * torch.rand(hidden.shape, generator=self.generator)


class WritesInput(Hostile):
    def forward(self, x):
        x.mul_(2)
        return super().forward(x)


class CannotBeCopied(Hostile):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class Stateful(Hostile):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.state = None

    def besides(self, hidden):
        if self.state is not None:
            self.state = tuple(part.detach() for part in self.state)
        hidden, self.state = self.cell(self.norm(hidden).unsqueeze(0), self.state)
        return hidden[0]


class Checkpointed(Hostile):
    def besides(self, hidden):
        return checkpoint(lambda x: F.dropout(x.sin(), 0.3), hidden, use_reentrant=False)


class AddsHooks(Hostile):
    def besides(self, hidden):
        if hidden.requires_grad:
            hidden.register_hook(lambda grad: grad * 0.5)
        return hidden


class Autocast(Hostile):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().forward(x).float()


class ChangesMode(Hostile):
    def besides(self, hidden):
        self.train(not self.training)
        return hidden


class Normed(Hostile):
    def __init__(self) -> None:
        super().__init__()
        self.first = parametrizations.weight_norm(self.first)
        self.last = spectral_norm(self.last)


class Hooked(Hostile):
    def __init__(self) -> None:
        super().__init__()
        self.first.register_forward_hook(lambda module, args, output: output + GLOBAL[0])


MODELS: dict[type[nn.Module], str] = {
    Hostile: "",
    Prints: "prints",
    Opens: "opens a file",
    WritesGlobal: "writes",
    Counts: "",
    Draws: "",
    HoldsGenerator: "",
    WritesInput: "",
    CannotBeCopied: "cannot be copied",
    Stateful: "",
    Checkpointed: "",
    AddsHooks: "",
    Autocast: "",
    ChangesMode: "",
    Normed: "",
    Hooked: "hooks on it",
}


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_the_run_is_the_same_bit_for_bit(make, tmp_path, monkeypatch, capfd):
    results = []
    for number, path in enumerate([None, tmp_path / "run.db"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        capfd.readouterr()
        kept = trained(make, plain, path)
        files = {file.name: file.read_bytes() for file in folder.iterdir()}
        results.append((kept, files, capfd.readouterr().out))
    (one, files, said), (other, files_too, said_too) = results
    assert same(one, other)
    assert files == files_too
    assert said == said_too
    stored, reason = info(tmp_path / "run.db"), MODELS[make]
    if reason:
        assert [why for why in stored["examination"]["not_examined"] if reason in why]
        assert stored["examined"] == []
    else:
        assert stored["examination"]["not_examined"] == []
        (first, _) = stored["examined"]
        assert (first["step"], first["reason"]) == (2, "")
        assert first["facts"]["replayable"], first["facts"]["why_not"]


def accumulated(model, optimizer):
    losses = []
    for number, (x, y) in enumerate(batches() * 2):
        loss = F.cross_entropy(model(x), y) / 2
        loss.backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
    return losses


def two_calls(model, optimizer):
    losses = []
    for x, y in batches():
        loss = F.cross_entropy(model(x), y) + F.mse_loss(model(x.flip(0)), torch.zeros(6, 3))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def two_lines(model, optimizer):
    losses = []
    for x, y in batches():
        optimizer.zero_grad()
        first = F.cross_entropy(model(x), y)
        first.backward()
        second = model(x).pow(2).mean()
        second.backward()
        optimizer.step()
        losses += [first.detach(), second.detach()]
    return losses


def closure(model, optimizer):
    lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=3)
    losses = []
    for x, y in batches():

        def again(x=x, y=y):
            lbfgs.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        losses.append(lbfgs.step(again).detach())
    return losses


def evaluated_between(model, optimizer):
    losses = []
    for x, y in batches():
        model.eval()
        with torch.no_grad():
            losses.append(model(x).mean())
        model.train()
        losses += plain_step(model, optimizer, x, y)
    return losses


def plain_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return [loss.detach()]


def interrupted(model, optimizer):
    losses = []
    for x, y in batches():
        with contextlib.suppress(ValueError):
            output = model(x)
            raise ValueError(output.sum().item())
        losses += plain_step(model, optimizer, x, y)
    return losses


def by_hand(model, optimizer):
    losses = []
    for x, y in batches():
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
        losses.append(loss.detach())
    return losses


def scaled(model, optimizer):
    scaler = torch.amp.GradScaler("cpu")
    losses = []
    for x, y in batches():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    return losses


def loaded(model, optimizer):
    data = TensorDataset(*map(torch.cat, zip(*batches(), strict=True)))
    return [
        loss
        for x, y in DataLoader(data, 6, shuffle=True)
        for loss in plain_step(model, optimizer, x, y)
    ]


LOOPS = [
    accumulated, two_calls, two_lines, closure, evaluated_between, interrupted, by_hand, scaled,
    loaded,
]  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_so_it_is_in_other_loops(loop, tmp_path):
    one = trained(Draws, loop, None)
    other = trained(Draws, loop, tmp_path / "run.db")
    assert same(one, other)
    stored = info(tmp_path / "run.db")
    assert stored["examination"]["not_examined"] == []
    assert stored["examined"]
    for result in stored["examined"]:
        assert result["outcome"] == "fine"
        assert result["facts"].get("replayable", True), result["facts"]["why_not"]
    if loop is two_lines:
        assert len({result["loss"] for result in stored["examined"]}) == 2
    if loop is loaded:
        assert Everything.seen[0].history.rows_are_samples


def normed() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))


@pytest.mark.parametrize("make", [normed, Draws, HoldsGenerator, Normed])
@pytest.mark.parametrize("loop", [plain, accumulated, two_lines])
def test_a_copy_that_is_trained_changes_nothing(make, loop, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "every_experiment", lambda: (CanLearn(),))
    one = trained(make, loop, None)
    other = trained(make, loop, tmp_path / "run.db")
    assert same(one, other)
    for result in info(tmp_path / "run.db")["examined"]:
        assert (result["outcome"], result["reason"]) == ("fine", "")
        assert (result["facts"]["optimizer"], result["facts"]["rate"]) == ("Adam", 0.01)
        assert result["facts"]["adam_rate"] in (1e-3, 1e-2)


def test_an_optimizer_that_calls_the_model_is_not_rehearsed(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "every_experiment", lambda: (CanLearn(),))
    model, (x, y) = Hostile(), batches()[0]
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    with nethook.watch(model, optimizer, to=tmp_path / "run.db", examine=True):
        for _ in range(STEPS):
            optimizer.step(closure)
    (result,) = info(tmp_path / "run.db")["examined"]
    assert result["outcome"] == "not applicable"
    assert "calls the model by itself" in result["reason"]


def test_a_trained_model_at_the_end(tmp_path):
    kept = trained(Hostile, plain, tmp_path / "run.db")
    (_, last) = info(tmp_path / "run.db")["examined"]
    assert last["experiment"] == "trained"
    assert last["facts"]["weight"] == float(kept["state"]["first.weight"].double().sum())


def test_its_time_is_its_own(tmp_path):
    model = Hostile()
    watch = nethook.watch(model, to=tmp_path / "run.db", examine=True)

    class Slow(Everything):
        name = "slow"

        def run(self, rehearsal):
            import time

            time.sleep(0.5)
            return fine(self)

    with pytest.MonkeyPatch.context() as patch, watch:
        patch.setattr(running, "every_experiment", lambda: (Slow(),))
        plain(model, torch.optim.Adam(model.parameters()))
    stored = info(tmp_path / "run.db")
    assert stored["examination"]["seconds"] > 0.5
    assert stored["cost"]["watch_seconds"] < 0.4
    assert stored["cost"]["seconds"] < 0.4
    assert stored["cost"]["total_seconds"] < 1.0


def test_it_rests_when_it_is_done(tmp_path):
    model = Hostile()
    with nethook.watch(model, to=tmp_path / "run.db", examine=True) as watch:
        recorders = watch._session.recorders
        told = lambda: [  # noqa: E731
            name
            for name in ("call_begins", "call_ends", "before_backward", "before_step", "end_step")
            for one in getattr(recorders, name)
            if isinstance(one.__self__, Examinations)
        ]
        assert len(told()) == 5
        plain(model, torch.optim.Adam(model.parameters()))
        assert told() == []


def test_a_new_optimizer_is_something_new(tmp_path):
    model = Hostile()
    with nethook.watch(model, to=tmp_path / "run.db", examine=True, budget=None):
        plain(model, torch.optim.Adam(model.parameters()))
        assert len(Everything.seen) == 1
        plain(model, torch.optim.SGD(model.parameters(), lr=0.1))
        plain(model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert len(Everything.seen) > 1


def test_without_being_asked_nothing_is_examined(tmp_path):
    model = Hostile()
    with nethook.watch(model, to=tmp_path / "run.db"):
        plain(model, torch.optim.Adam(model.parameters()))
    assert "examination" not in info(tmp_path / "run.db")
    assert Everything.seen == []


def test_a_short_run_says_why(tmp_path):
    model = Hostile()
    with nethook.watch(model, to=tmp_path / "run.db", examine=True):
        plain_step(model, torch.optim.Adam(model.parameters()), *batches()[0])
    (reason,) = info(tmp_path / "run.db")["examination"]["not_examined"]
    assert reason == "no loss had more than 2 backward passes"


def test_several_threads(tmp_path):
    model = Hostile()
    with nethook.watch(model, to=tmp_path / "run.db", examine=True, threads="all"):
        plain(model, torch.optim.Adam(model.parameters()))
    assert info(tmp_path / "run.db")["examination"]["not_examined"] == [
        "several threads are followed"
    ]


def test_no_room(tmp_path, monkeypatch):
    from nethook.examining import limits

    monkeypatch.setattr(limits, "free_bytes", lambda device=None: 100)
    one = trained(Hostile, plain, None)
    assert same(one, trained(Hostile, plain, tmp_path / "run.db"))
    (reason,) = info(tmp_path / "run.db")["examination"]["not_examined"]
    assert "are free" in reason


def test_no_time(tmp_path, monkeypatch):
    from nethook.examining import limits

    monkeypatch.setattr(limits, "LEAST", 0.0)
    trained(Hostile, plain, tmp_path / "run.db")
    (reason,) = info(tmp_path / "run.db")["examination"]["not_examined"]
    assert "may be used" in reason


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_a_compiled_model_is_not_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(keeping, "compiled_frames", compiled_frames)
    counts = []
    for path in (None, tmp_path / "run.db"):
        torch._dynamo.reset()
        graphs: list[int] = []

        def backend(graph, inputs, graphs=graphs):
            graphs.append(1)
            return graph.forward

        torch.manual_seed(0)
        model = torch.compile(Hostile(), backend=backend)
        criterion = torch.compile(F.cross_entropy, backend=backend)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        around: Any = contextlib.nullcontext()
        if path is not None:
            around = nethook.watch(model, optimizer, to=path, examine=True, quantities=())
        losses = []
        with around:
            for x, y in batches():
                loss = criterion(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        counts.append((len(graphs), torch.stack(losses)))
    assert counts[0][0] == counts[1][0]
    assert torch.equal(counts[0][1], counts[1][1])
    (first, _) = info(tmp_path / "run.db")["examined"]
    assert "torch.compile is in use" in first["facts"]["why_not"]


METHODS = [
    (owner, name)
    for owner in (Examinations, ChosenSteps, Keeper, TimeLeft)
    for name, what in vars(owner).items()
    if inspect.isfunction(what) and name not in ("__init__", "turn_off", "remove", "_batch_loaded")
]


@pytest.mark.parametrize(
    ("owner", "method"), METHODS, ids=[f"{owner.__name__}.{name}" for owner, name in METHODS]
)
def test_an_error_of_its_own_never_reaches_the_script(owner, method, tmp_path, monkeypatch):
    def fails(self, *args, **kwargs):
        raise RuntimeError("of our own")

    if owner is Examinations and method in (
        "call_begins", "call_ends", "before_backward", "before_step", "end_step", "end_window",
        "close",
    ):  # fmt: skip
        from nethook.watching.fail_open import contained

        monkeypatch.setattr(Examinations, method, contained(fails))
    else:
        monkeypatch.setattr(owner, method, fails)
    one = trained(Draws, plain, None)
    with contextlib.suppress(WatchWarning):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WatchWarning)
            other = trained(Draws, plain, tmp_path / "run.db")
    assert same(one, other)


def test_a_result_is_plain_data(tmp_path):
    trained(Hostile, plain, tmp_path / "run.db")
    for stored in info(tmp_path / "run.db")["examined"]:
        assert Result.from_dict(stored).outcome == "fine"
    assert copy.deepcopy(Everything.seen[0].recorded.loss).shape == ()
