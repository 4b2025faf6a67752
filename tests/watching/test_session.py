"""One watch while it runs: clock, phases, the end of a step, the end of watching."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook.runs import names
from nethook.watching.budget import QUANTITIES
from nethook.watching.protocols import OUTPUT_MARK, UNDER_WAY
from tests.watching.members import watched


@pytest.fixture
def session(tmp_path):
    with watched(tmp_path) as session:
        yield session


def test_the_outermost_call_decides_the_phase(session):
    model, x = nn.Linear(3, 2), (torch.ones(1, 3),)
    session.call_begins("", model, x, {})
    assert (session.depth, session.training, session.phase) == (1, True, "train")
    with torch.no_grad():
        session.call_begins("", model, x, {})
    assert (session.depth, session.training) == (2, True)
    for _ in range(2):
        session.call_ends("", model, x, torch.ones(1))
    assert (session.depth, session.forwards) == (0, 1)
    with torch.no_grad():
        session.call_begins("", model.eval(), x, {})
    assert (session.training, session.phase) == (False, "eval")


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
    seen = []
    session.on_step.append(seen.append)
    session.called = True
    session.forwards = session.backwards = 2
    session.skipped = True
    session.end_step()
    assert (seen, session.step, session.ending) == ([0], 1, 0)
    assert (session.forwards, session.backwards, session.skipped) == (0, 0, False)
    assert session.totals["steps"] == 1


def test_an_end_that_was_interrupted_is_done_later_and_nothing_twice(session):
    seen = []

    def interrupted(step):
        seen.append(step)
        if len(seen) == 1:
            raise KeyboardInterrupt

    session.on_step.append(interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.end_step()
    assert (session.ending, session.step) == (UNDER_WAY, 0)
    session.end_step()
    assert (session.ending, session.step, session.totals["steps"]) == (0, 1, 1)
    assert seen == [0, 0]  # the part that was interrupted is done again


def test_samples_are_taken_at_first_and_then_16_times_in_each_doubling(session):
    sampled = []
    for _ in range(130):
        if session.sampled():
            sampled.append(session.step)
        session.end_step()
    assert sampled == [*range(16), *range(16, 32), *range(32, 64, 2), *range(64, 130, 4)]


def test_what_is_not_wanted_is_never_due(tmp_path):
    model = nn.Linear(3, 2)
    with nethook.watch(
        model, to=tmp_path / "run.db", quantities=("outputs",), budget=None
    ) as watch:
        watch.be_silent()
        of = watch._session
        due = (of.on_outputs, of.on_grads, of.on_param_grads, of.on_params)
        assert dict(zip(QUANTITIES, due, strict=True)) == {
            "outputs": True, "grads": False, "param_grads": False, "params": False,
        }  # fmt: skip


def test_an_event_closes_the_window_and_a_note_does_not(session):
    session.note_event("note", "quietly")
    assert not session.window.early
    session.event("note", "loudly")
    assert session.window.early


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
