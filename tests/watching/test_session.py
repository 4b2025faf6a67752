"""One watch while it runs: clock, phases, the end of a step, the end of watching."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook.runs import names
from nethook.watching.clock.clock import UNDER_WAY
from nethook.watching.losses.marks import OUTPUT_MARK
from nethook.watching.recorder import Recorder
from tests.watching.members import watched


@pytest.fixture
def session(tmp_path):
    with watched(tmp_path) as session:
        yield session


class Noting(Recorder):
    """Notes the ends of steps; the first time it may be interrupted."""

    def __init__(self, session, interrupted=False) -> None:
        self.seen = []
        self.interrupted = interrupted
        session.recorders.add(self)

    def end_step(self, step):
        self.seen.append(step)
        if self.interrupted and len(self.seen) == 1:
            raise KeyboardInterrupt


def test_it_has_few_attributes(session):
    assert len(vars(session)) <= 12


def test_the_outermost_call_decides_the_phase(session):
    clock, calls = session.clock, session.clock.calls
    model, x = nn.Linear(3, 2), (torch.ones(1, 3),)
    session.call_begins("", model, x, {})
    assert (calls.depth, calls.training, clock.phase) == (1, True, "train")
    with torch.no_grad():
        session.call_begins("", model, x, {})
    assert (calls.depth, calls.training) == (2, True)
    for _ in range(2):
        session.call_ends("", model, x, torch.ones(1))
    assert (calls.depth, clock.forwards) == (0, 1)
    with torch.no_grad():
        session.call_begins("", model.eval(), x, {})
    assert (calls.training, clock.phase) == (False, "eval")


def test_outputs_are_marked_by_model_and_path(session):
    model = nn.Linear(3, 2)
    x = torch.ones(1, 3)
    out = {"a": model(x), "b": [model(x)]}
    session.call_begins("G", model, (x,), {})
    session.call_ends("G", model, (x,), out)
    marks = [tensor.grad_fn.metadata[OUTPUT_MARK] for tensor in (out["a"], out["b"][0])]
    assert [mark.model for mark in marks] == ["G", "G"]
    assert [len(mark.path) for mark in marks] == [1, 2]


def test_a_step_ends_with_everything_in_its_order_and_the_next_is_fresh(session):
    clock, noting = session.clock, Noting(session)
    clock.calls.called = True
    clock.forwards = clock.backwards = 2
    clock.skipped = True
    session.end_step()
    assert (noting.seen, clock.step, clock.ending) == ([0], 1, 0)
    assert (clock.forwards, clock.backwards, clock.skipped) == (0, 0, False)
    assert clock.totals["steps"] == 1


def test_an_end_that_was_interrupted_is_done_later_and_nothing_twice(session):
    clock, noting = session.clock, Noting(session, interrupted=True)
    with pytest.raises(KeyboardInterrupt):
        session.end_step()
    assert (clock.ending, clock.step) == (UNDER_WAY, 0)
    session.end_step()
    assert (clock.ending, clock.step, clock.totals["steps"]) == (0, 1, 1)
    assert noting.seen == [0, 0]  # the part that was interrupted is done again


def test_a_step_is_put_off_only_where_its_end_has_nothing_to_tell(session):
    session.schedule.until = 100
    assert session._put_off(0)
    assert not session._put_off(99)  # something is due in the next
    numbers, journal = session.recorders.numbers, session.journal
    numbers.irregular = True
    assert not session._put_off(0)
    numbers.irregular = False
    journal.eventful = True
    assert not session._put_off(0)
    journal.eventful = False
    journal.train.has_devices = True
    assert not session._put_off(0)
    journal.train.has_devices = False
    session.recorders.flight.flag("", "inputs", None, None, None)
    assert not session._put_off(0)
    session.schedule.until = 0


@pytest.mark.parametrize(
    ("clock", "text"),
    [
        ("optimizer", "a step is a step of the optimizers"),
        ("backward", "a step is a backward pass, for no optimizer"),
        ("forward", "a step is a call of the model"),
    ],
)
def test_what_counts_as_a_step_is_told(clock, text, session):
    session.change_clock(clock)
    assert (session.clock.kind, session.journal.eventful) == (clock, True)
    session.journal.writer.flush()
    with nethook.open_run(session.journal.run_path()) as run:
        [event] = [each for each in run.events if each.kind == names.CLOCK]
        assert event.message.startswith(text)
        assert event.data == {"clock": clock}
        assert run.info["clock"] == clock


@pytest.mark.parametrize("moves", ["in place", "data", "never"])
def test_weights_that_are_updated_by_hand_are_steps(moves, tmp_path):
    """Although there is an optimizer, which is never asked to step."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None) as watch:
        watch.be_silent()
        for _ in range(6):
            model.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            for parameter in model.parameters():
                if moves == "in place":
                    with torch.no_grad():
                        parameter -= 0.1 * parameter.grad
                elif moves == "data":
                    parameter.data -= 0.1 * parameter.grad
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == (1 if moves == "never" else 6)
        assert run.info["clock"] == "backward"


def test_a_closure_that_a_watch_begins_in_is_no_update_by_hand(tmp_path):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    watches = []

    def closure():
        if not watches:  # as under `nethook run`: at the first call of the model
            watches.append(nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None))
            watches[0].be_silent()
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).square().mean()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    watches[0].close()
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == 3


def test_a_step_that_changed_no_weights_is_kept_and_not_counted(tmp_path):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None) as watch:
        watch.be_silent()
        for step in range(3):
            model(torch.ones(1, 3)).sum().backward()
            if step < 2:
                optimizer.step()
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == 2
        assert run.info["unfinished_step"] == 2
        assert int(run.series(names.LOOP, names.BACKWARDS).seen.sum()) == 3


def test_forwards_alone_are_the_clock_where_nothing_else_is(tmp_path):
    model = nn.Linear(3, 2)
    with nethook.watch(model, to=tmp_path / "run.db") as watch:
        watch.be_silent()
        model(torch.ones(1, 3))
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["clock"] == "forward"
