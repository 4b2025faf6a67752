"""Changes of mode: one event per phase, told once when the step ends."""

from __future__ import annotations

from nethook.runs import names
from nethook.watching.measuring.modes import Modes
from tests.watching.fakes import journal


def test_one_module_in_another_mode_is_named():
    of = journal()
    modes = Modes(of)
    modes.changed("drop", "eval", True)
    assert of.eventful  # the step ends by itself
    modes.end_step(0)
    [(kind, _, message, address, data)] = of.writer.events
    assert (kind, address) == (names.MODE, "drop")
    assert message == "1 module is in training=True from here on (phase eval)"
    assert data == {"phase": "eval", "training": {"drop": True}}
    modes.end_step(1)
    assert len(of.writer.events) == 1  # told once


def test_several_modules_are_counted():
    of = journal()
    modes = Modes(of)
    for number in range(200):
        modes.changed(f"m{number}", "train", number > 50)
    modes.end_step(0)
    [(_, _, message, address, data)] = of.writer.events
    assert message == "200 modules are in another mode from here on (phase train)"
    assert (address, len(data["training"])) == ("", 100)


def test_the_mode_of_a_model_changes_with_its_first_call_and_then_when_it_is_another():
    modes = Modes(journal())
    assert [modes.model_called(mode) for mode in (True, True, False, False, True)] == [
        True, False, True, False, True,
    ]  # fmt: skip
