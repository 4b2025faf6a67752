"""Steps in which nothing is due end together, and leave behind what they leave behind alone."""

from __future__ import annotations

import gc
import warnings
import weakref
from random import Random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.watching import budget, schedule
from nethook.watching.fail_open import WatchWarning
from nethook.watching.flight.file import flight_path, load
from nethook.watching.flight.loss import LossKeeper
from nethook.watching.flight.recorder import Flight
from nethook.watching.flight.ring import PlainCall
from nethook.watching.losses.recorder import Losses
from nethook.watching.losses.values import LossValues
from nethook.watching.measuring.loop_numbers import LoopNumbers
from nethook.watching.schedule import Schedule
from nethook.watching.session import Session
from tests.watching.loops import batches, mlp, same, state, unwatched

STEPS = 170  # from step 64 on there are three quiet steps in a row, from step 128 on seven


@pytest.fixture(autouse=True)
def _thin(monkeypatch):
    """A budget that is overdrawn from the start: nearly nothing is measured."""
    monkeypatch.setattr(budget, "ALLOWANCE", -1e3)
    monkeypatch.setattr(budget, "WHOLE", -1e3)
    monkeypatch.setattr(schedule, "LONGEST", 1e3)  # however slow the machine


def watched(path):
    return lambda model, optimizer: nethook.watch(model, optimizer, to=path, budget=0.001)


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 16)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(16, 5)

    def forward(self, x):
        return self.last(self.drop(self.first(x)).log1p().relu())


# -- loops: each calls `told(losses)` in every step, and returns what it has trained


def plain(start, told, model=None):
    model = model or mlp()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    with start(model, optimizer):
        for x, y in batches(STEPS):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            told([loss])
    return state(model, optimizer)


def with_dropout(start, told):
    return plain(start, told, nn.Sequential(nn.Linear(10, 16), nn.Dropout(0.5), nn.Linear(16, 5)))


def scheduled(start, told):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    with start(model, optimizer):
        for x, y in batches(STEPS):
            loss = F.mse_loss(model(x), F.one_hot(y, 5).float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            told([loss])
    return state(model, optimizer)


def cleared_by_hand(start, told):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with start(model, optimizer):
        for step, (x, y) in enumerate(batches(STEPS)):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if step != 140:  # once it is forgotten
                for parameter in model.parameters():
                    parameter.grad = None
            told([loss])
    return state(model, optimizer)


def accumulated(start, told):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with start(model, optimizer):
        for x, y in batches(STEPS):
            optimizer.zero_grad()
            losses = []
            for part in (slice(0, 4), slice(4, 8)):
                loss = F.cross_entropy(model(x[part]), y[part])
                loss.backward()
                losses.append(loss)
            optimizer.step()
            told(losses)
    return state(model, optimizer)


def two_lines(start, told):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with start(model, optimizer):
        for step, (x, y) in enumerate(batches(STEPS)):
            if 120 <= step < 130:
                model(x)  # of which no loss is taken
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if step > 130 and step % 2:
                loss = loss + 0.1 * model[0].weight.square().mean()
                loss.backward()
            else:
                loss.backward()
            optimizer.step()
            told([loss])
    return state(model, optimizer)


def evaluated(start, told):
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    with start(model, optimizer):
        for step, (x, y) in enumerate(batches(STEPS)):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if step % 50 == 37:
                model.eval()
                with torch.no_grad():
                    F.cross_entropy(model(x), y)
                if step < 100:  # later on it is forgotten
                    model.train()
            if step == 150:
                model(x)  # a call whose output nobody uses
                optimizer.zero_grad()
            told([loss])
    return state(model, optimizer)


LOOPS = [plain, with_dropout, scheduled, cleared_by_hand, accumulated, two_lines, evaluated]


def recorded(path):
    """What a run file has, but for times and for how steps are divided into windows."""
    run = nethook.open_run(path)
    found = {}
    for info in run.catalogue:
        if info.quantity in ("step_seconds", "watch_seconds") or info.address != "@loop":
            continue
        series = run.series(info.address, info.quantity)
        total = float((series["mean"] * series["count"]).sum())
        found[info.quantity] = (
            int(series.seen.sum()), float(series["count"].sum()), round(total, 6),
            float(np.nanmin(series["min"])), float(np.nanmax(series["max"])),
        )  # fmt: skip
    for name, points in run.scalars.items():
        if not name.startswith("fingerprint"):
            found[name] = list(zip(points.step.tolist(), points.value.tolist(), strict=True))
    found["totals"] = run.info["totals"]
    found["events"] = [
        (event.kind, event.step, event.message)
        for event in run.events
        if event.kind not in ("thinned", "watch-closed")
    ]
    return found


@pytest.mark.parametrize("loop", LOOPS)
def test_steps_that_end_together_record_what_they_record_alone(loop, tmp_path, monkeypatch):
    losses = []

    def told(found):
        losses.append(sum(each.item() for each in found) / len(found))

    torch.manual_seed(0)
    alone = loop(unwatched, told)
    put_off = []
    original = Session._put_off

    def noted(session, step):
        put_off.append(original(session, step))
        return put_off[-1]

    monkeypatch.setattr(Session, "_put_off", noted)
    torch.manual_seed(0)
    assert same(alone, loop(watched(tmp_path / "together.db"), lambda _: None))
    assert sum(put_off) > 40
    monkeypatch.setattr(Session, "_put_off", lambda *_: False)
    torch.manual_seed(0)
    loop(watched(tmp_path / "alone.db"), lambda _: None)
    mine, other = recorded(tmp_path / "together.db"), recorded(tmp_path / "alone.db")
    assert mine == other
    assert mine["totals"]["steps"] == STEPS
    points = {}
    for name, known in mine.items():
        if name.startswith("loss"):
            points.update(dict(known))
    assert [points[step] for step in range(STEPS)] == pytest.approx(losses, rel=1e-12)


def at_random(seed):
    """A loop that is plain but for one step in a few, which does something else."""

    def loop(start, told):
        random = Random(seed)
        model = nn.Sequential(nn.Linear(10, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 5))
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=500)
        with start(model, optimizer):
            for x, y in batches(STEPS):
                odd = random.choice(ODD) if random.random() < 0.3 else ""
                if odd != "forgets":
                    (model if odd == "of the model" else optimizer).zero_grad()
                loss = F.cross_entropy(model(x), y)
                if odd == "penalty":
                    loss = loss + 0.01 * model[0].weight.abs().sum()
                if odd == "unused":
                    model(x)
                if odd == "directly":
                    torch.autograd.backward(loss)
                elif odd == "keeps":
                    loss.backward(retain_graph=True)
                    loss.backward()
                elif odd != "no backward":
                    loss.backward()
                if odd == "gradient of gradient":
                    (again,) = torch.autograd.grad(model(x).sum(), model[0].weight)
                    again.sum()
                if odd == "closure":
                    optimizer.step(lambda loss=loss: loss)
                elif odd != "no step":
                    optimizer.step()
                if odd == "clips":
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                if odd == "rate":
                    schedule.step()
                if odd == "evaluates":
                    model.eval()
                    with torch.no_grad():
                        F.cross_entropy(model(x), y)
                    model.train()
                if odd == "mode":
                    model.train(not model.training)
                if odd == "wipes":
                    optimizer.zero_grad()
                told([loss])
        return state(model, optimizer)

    return loop


ODD = (
    "forgets", "of the model", "penalty", "unused", "directly", "keeps", "no backward",
    "gradient of gradient", "closure", "no step", "clips", "rate", "evaluates", "mode", "wipes",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_loop_does_they_record_what_they_record_alone(seed, tmp_path, monkeypatch):
    loop = at_random(seed)
    torch.manual_seed(0)
    alone = loop(unwatched, lambda _: None)
    torch.manual_seed(0)
    assert same(alone, loop(watched(tmp_path / "together.db"), lambda _: None))
    monkeypatch.setattr(Session, "_put_off", lambda *_: False)
    torch.manual_seed(0)
    loop(watched(tmp_path / "alone.db"), lambda _: None)
    assert recorded(tmp_path / "together.db") == recorded(tmp_path / "alone.db")


def quiet_step(session):
    """Whether nothing is due in the step that begins, nor in the next."""
    return session.schedule.until > session.clock.step + 1 > 129


def train_until_quiet(watch, model, optimizer):
    data = batches(400)
    for x, y in data:
        if quiet_step(watch._session):
            return
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    raise AssertionError("no step was quiet")


def test_a_nan_is_pinned_and_replayed_with_its_dropout(tmp_path, capsys):
    torch.manual_seed(0)
    model = Dropped()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    path = tmp_path / "run.db"
    with nethook.watch(model, optimizer, to=path, budget=0.001) as watch:
        for x, y in batches(400):
            if quiet_step(watch._session):
                break
            optimizer.zero_grad()
            F.cross_entropy(model(x.abs() * 0.1), y).backward()
            optimizer.step()
        step = watch._session.clock.step
        optimizer.zero_grad()
        drawn = torch.get_rng_state()
        output = model(x * 100.0)  # log1p below −1
        F.cross_entropy(output, y).backward()
        optimizer.step()
    (event,) = [each for each in nethook.open_run(path).events if each.kind == "non-finite"]
    assert event.step == step
    assert event.data["weights"] is True
    torch.manual_seed(7)  # the state of the generator is in the file
    found = nethook.replay(path, model)
    assert "log1p" in str(found)

    assert torch.equal(load(flight_path(str(path))).random["cpu"], drawn)


def test_a_nan_of_the_backward_pass_is_replayed_with_its_target(tmp_path, capsys):
    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(10, 5)
            self.shift = 1.0

        def forward(self, x):
            y = self.fc(x)
            return y + 0.0 * (y * 0.0 + self.shift).sqrt()

    torch.manual_seed(0)
    model = Root()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    path = tmp_path / "run.db"
    with nethook.watch(model, optimizer, to=path, budget=0.001) as watch:
        for step, (x, y) in enumerate(batches(200)):
            optimizer.zero_grad()
            if step > 140 and quiet_step(watch._session):
                model.shift = 0.0
                bad = watch._session.clock.step
            F.cross_entropy(model(x), y).backward()
            if model.shift == 0.0:
                break
            optimizer.step()
        optimizer.step()
    (event,) = [each for each in nethook.open_run(path).events if each.kind == "non-finite"]
    assert (event.step, event.data["case"]) == (bad, "backward")
    assert "sqrt" in str(nethook.replay(path, model)).lower()


def test_a_new_loss_is_described_as_in_any_step(tmp_path):
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=0.001) as watch:
        train_until_quiet(watch, model, optimizer)
        x, y = batches(1)[0]
        optimizer.zero_grad()
        F.mse_loss(model(x), F.one_hot(y, 5).float()).backward()
        optimizer.step()
    records = [each for each in nethook.open_run(tmp_path / "run.db").losses if each.step > 128]
    (record,) = [each for each in records if each.data["kind"] == "mse"]
    assert record.data["model"] == ""  # it was traced to the model's output
    assert record.data["prediction"]["shape"] == [8, 5]


def test_nothing_holds_the_graph(tmp_path):
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=0.001) as watch:
        train_until_quiet(watch, model, optimizer)
        x, y = batches(1)[0]
        for used in (True, False):
            optimizer.zero_grad()
            output = model(x)
            known = weakref.ref(output)
            if used:
                F.cross_entropy(output, y).backward()
            else:
                optimizer.zero_grad()
            del output
            gc.collect()
            assert known() is None


def test_a_batch_is_held_until_the_next_and_no_longer(tmp_path):
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=0.001) as watch:
        train_until_quiet(watch, model, optimizer)
        seen, y = [], batches(1)[0][1]
        while quiet_step(watch._session):
            # The first is of a line that was not known.
            held = [each() is not None for each in seen[1:]]
            assert held == [False] * (len(held) - 1) + [True] * bool(held)
            x = torch.randn(8, 10)
            seen.append(weakref.ref(x))
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            del x
        assert len(seen) > 3
    assert watch._session.recorders.flight.held.plain.held is None


def test_a_batch_that_is_too_large_is_not_held(tmp_path, monkeypatch):
    monkeypatch.setattr("nethook.watching.flight.ring.CAP", 100)
    monkeypatch.setattr("nethook.watching.flight.held.CAP", 100)
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=0.001) as watch:
        train_until_quiet(watch, model, optimizer)
        x = torch.randn(8, 10)
        known = weakref.ref(x)
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        del x
        assert known() is None


def test_a_target_that_was_written_is_the_scripts_error(tmp_path):
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=0.001) as watch:
        train_until_quiet(watch, model, optimizer)
        (x, y), _ = batches(2)
        for _ in range(2):  # of which the second is on a line that is known
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            y += 0
            with pytest.raises(RuntimeError, match="inplace operation"):
                loss.backward()
        assert watch._session.journal.guard.failures == 0


def test_another_optimizer_in_the_middle_is_part_of_the_step(tmp_path):
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model[0].parameters(), 0.01)
    with nethook.watch(model, to=tmp_path / "run.db", budget=0.001) as watch:
        train_until_quiet(watch, model, optimizer)
        other = torch.optim.SGD(model[2].parameters(), 0.01)
        first = watch._session.clock.step
        for x, y in batches(3):
            optimizer.zero_grad()
            other.zero_grad()
            F.cross_entropy(model(x), y).backward()
            other.step()
            optimizer.step()
        assert watch._session.clock.step == first + 3


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_transforms_and_traces_between_steps_are_no_calls_of_the_loop(tmp_path):
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, _ = batches(1)[0]

    def artefact():
        return torch.jit.trace(model, x, check_trace=False).code

    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=0.001) as watch:
        train_until_quiet(watch, model, optimizer)
        session = watch._session
        weights = dict(model.named_parameters())

        def value(given):
            return torch.func.functional_call(model, given, (x,)).sum()

        torch.func.grad(value)(weights)
        mine = artefact()
        assert quiet_step(session)
        assert session.clock.forwards == 0
        assert session.clock.calls.depth == 0
    assert mine == artefact()


def test_what_is_left_behind_is_told_at_the_end(tmp_path):
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    watch = nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=0.001)
    train_until_quiet(watch, model, optimizer)
    first = watch._session.clock.step
    for x, y in batches(2):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert len(watch._session.recorders.numbers._ended) == 2
    watch.close()
    run = nethook.open_run(tmp_path / "run.db")
    series = run.series("@loop", "forwards")
    assert series.seen.sum() == series.steps.sum() == first + 2
    told = [step for name, points in run.scalars.items() if name.startswith("loss")
            for step in points.step.tolist()]  # fmt: skip
    assert sorted(told) == list(range(first + 2))


METHODS = [
    (Session, "_put_off"), (Session, "_keep"), (Session, "_fold"), (Schedule, "step_ended"),
    (LoopNumbers, "keep"), (LoopNumbers, "fold"), (Flight, "was_easy"),
    (LossKeeper, "keep_plainly"), (Losses, "backward"), (Losses, "_mark"),
    (Losses, "forget"), (LossValues, "take"),
]  # fmt: skip


@pytest.fixture(scope="module")
def alone():
    torch.manual_seed(0)
    return two_lines(unwatched, lambda _: None)


@pytest.mark.parametrize(("holder", "name"), METHODS)
def test_an_error_stays_inside(holder, name, alone, tmp_path, monkeypatch):
    called = []

    def bomb(*_):
        called.append(name)
        raise RuntimeError("injected")

    def start(model, optimizer):
        watch = nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=0.001)
        property_of = isinstance(vars(holder)[name], property)
        monkeypatch.setattr(holder, name, property(bomb) if property_of else bomb)
        return watch

    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = two_lines(start, lambda _: None)
    monkeypatch.undo()
    assert same(alone, result)
    said = [each for each in caught if issubclass(each.category, WatchWarning)]
    events = [each for each in nethook.open_run(tmp_path / "run.db").events
              if each.kind == "watch-failed"]  # fmt: skip
    assert called
    assert len(said) == 1
    assert "injected" in events[0].data["error"]


def test_an_error_in_what_holds_the_batch_of_a_nan_stays_inside(tmp_path, monkeypatch, capsys):
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=0.001) as watch:
        train_until_quiet(watch, model, optimizer)

        def bomb(*_):
            raise RuntimeError("injected")

        monkeypatch.setattr(PlainCall, "kept_in", bomb)
        x, y = batches(1)[0]
        optimizer.zero_grad()
        with pytest.warns(WatchWarning, match="injected"):
            (F.cross_entropy(model(x), y) * torch.nan).backward()
        optimizer.step()
        steps = watch._session.clock.step
    run = nethook.open_run(tmp_path / "run.db")
    assert run.series("@loop", "forwards").steps.sum() == steps
