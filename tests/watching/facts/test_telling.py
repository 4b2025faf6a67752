"""The sentences of events."""

from __future__ import annotations

import pytest

from nethook.runs import names
from nethook.watching.facts.telling import tell_clock, tell_failure, tell_frozen, tell_modes
from tests.watching.fakes import session


def test_one_module_in_another_mode_is_named():
    of = session()
    modes = {"eval": {"drop": True}}
    tell_modes(of, modes)
    [(kind, _, message, address, data)] = of.writer.events
    assert (kind, address) == (names.MODE, "drop")
    assert message == "1 module is in training=True from here on (phase eval)"
    assert data == {"phase": "eval", "training": {"drop": True}}
    assert modes == {}  # told once


def test_several_modules_are_counted():
    of = session()
    tell_modes(of, {"train": {f"m{number}": number > 50 for number in range(200)}})
    [(_, _, message, address, data)] = of.writer.events
    assert message == "200 modules are in another mode from here on (phase train)"
    assert (address, len(data["training"])) == ("", 100)


def test_frozen_parameters():
    of = session()
    tell_frozen(of, {"a": False, "b": True})
    [(kind, _, message, _, data)] = of.writer.events
    assert (kind, message) == (names.PARAMETERS, "requires_grad of 2 parameters changed")
    assert data == {"requires_grad": {"a": False, "b": True}}


@pytest.mark.parametrize(
    ("clock", "text"),
    [
        ("optimizer", "a step is a step of the optimizers"),
        ("backward", "a step is a backward pass, for no optimizer"),
        ("forward", "a step is a call of the model"),
    ],
)
def test_what_counts_as_a_step(clock, text):
    of = session()
    tell_clock(of, clock)
    [(kind, _, message, _, data)] = of.writer.events
    assert kind == names.CLOCK
    assert message.startswith(text)
    assert data == {"clock": clock}


def test_a_failure_does_not_close_the_window():
    of = session(step=7, event=None)  # which closes it
    tell_failure(of, "the loss record", "ValueError: odd", "Traceback ...")
    [(kind, step, message, _, data)] = of.writer.events
    assert (kind, step) == (names.FAILED, 7)
    assert message == "the loss record failed and is off: ValueError: odd"
    assert data["traceback"] == "Traceback ..."
