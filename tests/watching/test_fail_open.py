"""An error inside nethook never reaches the script: one test a function of the watch path."""

from __future__ import annotations

import inspect
import sys
import warnings
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

import nethook
from nethook import watching
from nethook.hooks.wrapped import wrapped_functions
from nethook.watching.fail_open import MOST_FAILURES, FailsAlone, Guard, WatchWarning, contained
from tests.watching.loops import Net, batches, same, state, unwatched

ROOMS = (
    "measuring.batches",
    "budget",
    "costs",
    "estimates",
    "series",
    "facts.facts",
    "flight.recorder",
    "compiled_cost",
    "loop.interrupted",
    "losses.lines",
    "losses.values",
    "losses.recorder",
    "hooks.root_hooks",
    "hooks.wrappers",
    "measuring.loop_numbers",
    "measuring.window",
    "facts.op_order",
    "loop.held_parameters",
    "loop.moved_by_hand",
    "loop.optimizers",
    "clock.call_order",
    "measuring.parameter_facts",
    "measuring.parameters",
    "measuring.parameter_numbers.flat_parameters",
    "measuring.parameter_numbers.flat_weights",
    "measuring.parameter_numbers.weight_copies",
    "measuring.parameter_numbers.flat_gradients",
    "measuring.parameter_numbers.flat_cosines",
    "measuring.parameter_numbers.one_by_one",
    "measuring.parameter_numbers.parameter_slots",
    "loop.passes",
    "loop.rebinding",
    "session",
    "measuring.snapshots",
    "measuring.taps",
    "journal",
    "schedule",
    "recorder",
    "recorders",
    "clock.calls",
    "clock.clock",
    "clock.gradients",
    "clock.pass_without_grad",
    "clock.step_end",
    "clock.turns",
    "loop.closures",
    "measuring.gradient_scale",
    "measuring.loader_passes",
    "measuring.modes",
    "loop.track",
)
# What the loss record and the flight recorder call: each of these two fails alone.
PARTS = (
    "loop.written_buffers",
    "flight.file",
    "flight.ranges",
    "flight.loss",
    "flight.culprit",
    "flight.reasons",
    "flight.ring",
    "flight.held",
    "losses.agreement",
    "losses.called_from",
    "losses.calls",
    "losses.graph",
    "losses.marks",
    "losses.kept",
    "losses.kinds",
    "losses.loops",
    "losses.numbers",
    "losses.padding",
    "losses.record",
    "losses.samples",
    "losses.tally",
)
# The guards themselves, what begins and ends a watch, and what is no part of one.
ELSEWHERE = (
    "attach",
    "diagnosis",
    "fail_open",
    "flight.replaying",
    "flight.replay_ops",
    "watch",
    "flight.flag",
    # Losses of several summands: see losses/test_parts.py.
    "losses.parts",
    # Other loops than this one: of ranks, devices and threads; the hooks around steps.
    "facts.averaging",
    "measuring.device_parameters",
    "measuring.device_flags",
    "hooks.step_hooks",
    "threads",
    # Which part of a model is called in its place: see hooks/test_doors.py.
    "hooks.doors",
    # Other runs than this one: that go on in a file, or whose steps are cut short.
    "facts.earlier",
    "measuring.witnesses",
    # Who gets a gradient, asked in a few steps: see facts/test_graph.py.
    "facts.attributes",
    "facts.critic_terms",
    "facts.graph",
    "facts.held_tensors",
    "facts.holders",
    "facts.loose_leaves",
    "facts.plain_tensors",
    "facts.start",
    "loop.loose_tensors",
    # Steps without an optimizer of torch's: see loop/test_hand_steps.py.
    "loop.hand_steps",
    # Gradients that are cleared before a step: see loop/test_wiped_passes.py.
    "loop.wiped_passes",
    # Runs with a NaN: see flight/test_at_once.py.
    "flight.at_once",
    # Evaluations that compare answers with labels: see evaluations/test_scores.py.
    "evaluations.answers",
    "evaluations.scores",
    "evaluations.thinning",
    # Runs that are examined: `test_examinations`.
    "examinations.batches",
    "examinations.chosen",
    "examinations.keeper",
    "examinations.recorder",
    "examinations.time_left",
    "examinations.turns",
)

PACKAGE = "nethook.watching."

# What torch calls, and what reports a failure: these are the guard itself.
GUARDS = {
    "__call__",
    "failed",
    "turn_off",
    "guarded",
    "on",
    "_tell_failure",
    "_give_up",
    "_saw_loss",
}
# What is called before anything is watched, by the user: there an error is the user's to see.
BEFORE = {"__init__", "wrap_loop", "_schedulers", "activation", "_add", "row"}


def everything(start, steps=10):
    """A loop with all calls that a loop can have."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=2)
    with start(model, optimizer):
        data = DataLoader(batches(steps, 8, 1, 6, 6), batch_size=None)
        for step, (x, y) in enumerate(data):
            if step == 7:

                def closure(x=x, y=y):
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(x), y)
                    loss.backward()
                    return loss

                optimizer.step(closure)
                continue
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if step == 4:
                loss = loss * torch.nan
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            if step in (2, 5):
                model.eval()
                with torch.no_grad():
                    F.cross_entropy(model(x), y)
                model.train()
    return state(model, optimizer)


def functions(rooms=ROOMS):
    """Every function and method of the watch path."""
    for room in rooms:
        module = import_module(f"nethook.watching.{room}")
        for name, member in vars(module).items():
            if inspect.isfunction(member) and member.__module__ == module.__name__:
                if name not in BEFORE:
                    yield pytest.param(module, name, id=f"{room}.{name}")
            elif inspect.isclass(member) and member.__module__ == module.__name__:
                if issubclass(member, Exception | Warning):
                    continue
                for method, what in vars(member).items():
                    known = isinstance(what, property) or inspect.isfunction(what)
                    if known and method not in GUARDS | BEFORE:
                        yield pytest.param(member, method, id=f"{room}.{name}.{method}")


@pytest.fixture(scope="module")
def alone():
    torch.manual_seed(0)
    whole = everything(unwatched)
    torch.manual_seed(0)
    return whole, everything(unwatched, 6)


def test_every_file_of_the_room_is_looked_through():
    room = Path(watching.__file__).parent
    files = {
        ".".join(file.relative_to(room).with_suffix("").parts)
        for file in room.rglob("*.py")
        if file.stem != "__init__"
    }
    # Others may add parts that are looked through elsewhere, and say so here.
    assert files == {*ROOMS, *PARTS, *ELSEWHERE}


@pytest.fixture(scope="module")
def reached(tmp_path_factory):
    """The functions of the parts that the loop comes by, as (file, name)."""
    folder, seen = tmp_path_factory.mktemp("reached"), set()

    def note(frame, event, _):
        if event == "call" and "/watching/" in frame.f_code.co_filename:
            file = frame.f_code.co_filename.rpartition("/watching/")[2]
            seen.add((file.removesuffix(".py").replace("/", "."), frame.f_code.co_name))

    torch.manual_seed(0)
    sys.setprofile(note)
    try:
        everything(
            lambda model, optimizer: nethook.watch(
                model, optimizer, to=folder / "run.db", budget=None
            )
        )
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("part", PARTS)
def test_an_error_in_what_a_part_calls_turns_that_part_off(part, alone, reached, tmp_path):
    """One after the other: each function of the file that a loop comes by."""
    failed = 0
    for at, each in enumerate(functions((part,))):
        holder, name = each.values
        original = vars(holder)[name]
        if (part, name) not in reached or isinstance(original, property):
            continue
        path = tmp_path / f"{at}.db"

        def bomb(*args, **kwargs):
            raise RuntimeError("injected")

        def start(model, optimizer, path=path, holder=holder, name=name, original=original):
            watch = nethook.watch(model, optimizer, to=path, budget=None)
            # Those that have taken the function by its name have it still.
            here = [each for path, each in sys.modules.items() if path.startswith(PACKAGE)]
            holders = [holder] if inspect.isclass(holder) else here
            for other in holders:
                if getattr(other, "__dict__", {}).get(name) is original:
                    patch.setattr(other, name, bomb)
            return watch

        torch.manual_seed(0)
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = everything(start, 6)
        assert same(alone[1], result), name
        said = [each for each in caught if issubclass(each.category, WatchWarning)]
        assert len(said) <= 1
        failed += len(said)
        run = nethook.open_run(path)
        events = [event for event in run.events if event.kind == "watch-failed"]
        assert bool(events) == bool(said), name
        assert run.info["totals"]["steps"] == 6  # everything else goes on
    assert failed or part in {"flight.reasons", "flight.file"}


@pytest.mark.parametrize(("holder", "name"), list(functions()))
def test_an_error_in_a_function_stays_inside(holder, name, alone, tmp_path, monkeypatch):
    called = []

    def bomb(*args, **kwargs):
        called.append(name)
        raise RuntimeError("injected")

    def start(model, optimizer):
        watch = nethook.watch(
            model, optimizer, to=tmp_path / "run.db", budget=None, snapshots={"conv": 2}
        )
        is_property = isinstance(vars(holder)[name], property)
        monkeypatch.setattr(holder, name, property(bomb) if is_property else bomb)
        return watch

    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = everything(start)
    monkeypatch.undo()
    assert same(alone[0], result)
    assert torch._C._len_torch_function_stack() == 0
    assert not list(wrapped_functions())
    said = [each for each in caught if issubclass(each.category, WatchWarning)]
    run = nethook.open_run(tmp_path / "run.db")
    events = [event for event in run.events if event.kind == "watch-failed"]
    if called:
        assert len(said) == 1
        assert "training is not affected" in str(said[0].message)
        assert "injected" in str(said[0].message)
        assert events
        assert "injected" in events[0].data["error"]
    else:
        assert not said
        assert not events


def test_one_tap_that_fails_leaves_the_others_on(tmp_path, monkeypatch):
    from nethook.watching.measuring.taps import OutputTap

    measure = OutputTap.measure

    def at_conv(self, *args):
        if self.address == "conv":
            raise RuntimeError("injected")
        return measure(self, *args)

    def start(model, optimizer):
        watch = nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None)
        monkeypatch.setattr(OutputTap, "measure", at_conv)
        return watch

    with pytest.warns(WatchWarning, match="OutputTap at 'conv'"):
        everything(start)
    run = nethook.open_run(tmp_path / "run.db")
    series = {(info.address, info.quantity) for info in run.catalogue}
    assert ("conv", "outputs") not in series
    assert int(run.series("norm", "outputs").seen.sum()) == 10


def test_a_secret_in_an_error_is_neither_said_nor_kept(tmp_path, monkeypatch):
    from nethook.watching.measuring.taps import OutputTap

    def fails(self, *args):
        raise RuntimeError("cannot open postgres://me:hunter2@host/db?password=hunter2")

    def start(model, optimizer):
        watch = nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None)
        monkeypatch.setattr(OutputTap, "measure", fails)
        return watch

    with pytest.warns(WatchWarning, match=r"postgres://\*\*\*@host/db") as said:
        everything(start)
    assert not any("hunter2" in str(each.message) for each in said)
    failed = next(
        e for e in nethook.open_run(tmp_path / "run.db").events if e.kind == "watch-failed"
    )
    shown = "RuntimeError: cannot open postgres://***@host/db?password=***"
    assert failed.data["error"] == shown
    assert b":hunter2" not in (tmp_path / "run.db").read_bytes()


def test_what_a_forked_child_does_is_not_watched(tmp_path):
    import os

    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db") as watch:
        child = os.fork()
        if child == 0:  # nothing of pytest may run in here
            alive = watch._session.journal.guard.alive
            ours = len(nethook.audit(model).ours)
            os._exit(10 if alive or ours else 0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        model(torch.randn(4, 3)).sum().backward()
        optimizer.step()
    assert nethook.open_run(tmp_path / "run.db").info["totals"]["steps"] == 1


def told_guard():
    told, given_up = [], []
    guard = Guard(lambda part, error, trace: told.append((part, error)), lambda: given_up.append(1))
    guard.silent = True
    return guard, told, given_up


def test_a_part_is_turned_off_each_time_and_told_once():
    guard, told, given_up = told_guard()
    off = []
    for _ in range(3):
        guard.failed("a part", ValueError("odd"), lambda: off.append(1))
    assert (told, len(off), guard.failures) == ([("a part", "ValueError: odd")], 3, 3)
    assert guard.alive
    assert not given_up


def test_watching_ends_with_what_it_cannot_do_without_and_after_many_failures():
    guard, told, given_up = told_guard()
    guard.failed("the clock", ValueError("odd"), None)
    assert (guard.alive, given_up, len(told)) == (False, [1], 1)
    guard, told, given_up = told_guard()
    for number in range(MOST_FAILURES):
        guard.failed(f"part {number}", ValueError("odd"), lambda: None)
    assert guard.alive
    guard.failed("one more", ValueError("odd"), lambda: None)
    assert (guard.alive, given_up, len(told)) == (False, [1], MOST_FAILURES + 1)


def test_a_recorder_is_turned_off_even_after_watching_has_ended():
    guard, told, _ = told_guard()
    guard.stop()
    off = []
    guard.failed("late", ValueError("odd"), lambda: off.append(1))
    assert (off, told, guard.failures) == ([1], [], 0)


def test_what_reports_a_failure_may_fail_itself():
    def fails(*args):
        raise OSError("the disk is full")

    guard = Guard(fails, fails)
    guard.silent = True
    guard.failed("a part", ValueError("odd"), lambda: None)
    assert not guard.alive
    guard = Guard(lambda *args: None, fails)
    guard.silent = True
    guard.failed("a part", ValueError("odd"), fails)
    assert not guard.alive


class Recorder(FailsAlone):
    part = "a recorder"

    def __init__(self, guard):
        self._watching = SimpleNamespace(guard=guard)

    @contained
    def share(self, of, among):
        """One part of several."""
        return of / among


def test_a_contained_method_fails_alone_and_then_does_nothing():
    guard, told, _ = told_guard()
    recorder, other = Recorder(guard), Recorder(guard)
    assert recorder.share(6, among=3) == 2.0
    assert recorder.share(1, 0) is None
    assert (recorder.off, other.off) == (True, False)
    assert recorder.share(6, 3) is None
    assert other.share(6, 3) == 2.0
    assert told == [("a recorder", "ZeroDivisionError: division by zero")]
    assert Recorder.share.__doc__ == "One part of several."


def test_what_a_signal_raises_goes_on(monkeypatch):
    monkeypatch.setattr("nethook.watching.fail_open.raised_by_signal", lambda error: True)
    guard, told, _ = told_guard()
    recorder = Recorder(guard)
    with pytest.raises(ZeroDivisionError):
        recorder.share(1, 0)
    assert (recorder.off, told, guard.alive) == (False, [], True)


def test_where_warnings_are_errors_a_failure_is_in_the_events_alone():
    told = []
    guard = Guard(lambda part, error, trace: told.append(part), lambda: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guard.failed("a part", ValueError("odd"), lambda: None)
    assert told == ["a part"]
    guard = Guard(lambda part, error, trace: None, lambda: None)
    with pytest.warns(WatchWarning, match="failed in the clock .* watching has ended"):
        guard.failed("the clock", ValueError("odd"), None)
