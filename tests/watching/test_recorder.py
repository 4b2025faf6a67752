"""What recorders are told: each method goes to those that override it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nethook.watching.fail_open import FailsAlone, Guard, WatchWarning
from nethook.watching.recorder import Calls, Recorder, Recorders


class Counting(Recorder):
    def __init__(self) -> None:
        self.steps = []
        self.closed = 0

    def end_step(self, step):
        self.steps.append(step)

    def close(self):
        self.closed += 1


def test_a_recorder_is_told_what_it_overrides():
    recorders, counting = Recorders(), Counting()
    recorders.add(Recorder())
    recorders.add(counting)
    assert list(recorders)[1] is counting
    assert (len(recorders.end_step), len(recorders.close)) == (1, 1)
    assert recorders.call_begins == recorders.end_window == []
    for told in recorders.end_step:
        told(4)
    assert counting.steps == [4]


def test_every_method_of_a_recorder_can_be_told():
    methods = {name for name, value in vars(Recorder).items() if callable(value)}
    assert methods == set(vars(Calls()))


class Resting(Counting, FailsAlone):
    """Has nothing to do in steps in which nothing is due, and may fail."""

    rests = ("end_step",)

    def __init__(self) -> None:
        super().__init__()
        self._watching = SimpleNamespace(guard=Guard(lambda *_: None, lambda: None))


def test_a_recorder_that_rests_is_not_told_of_quiet_steps():
    recorders, counting, resting = Recorders(), Counting(), Resting()
    recorders.add(counting)
    recorders.add(resting)
    assert recorders.end_step == [counting.end_step, resting.end_step]
    assert recorders.quiet.end_step == [counting.end_step]
    assert recorders.quiet.close == recorders.close


def test_one_that_fails_is_told_nothing_any_more():
    recorders, counting, resting = Recorders(), Counting(), Resting()
    recorders.add(counting)
    recorders.add(resting)
    with pytest.warns(WatchWarning):
        recorders.failed(resting.end_step, ValueError("odd"))
    assert resting.off
    assert recorders.end_step == [counting.end_step]
    with pytest.raises(ValueError, match="odd"):
        recorders.failed(counting.end_step, ValueError("odd"))


def test_what_nobody_overrides_does_nothing():
    recorder = Recorder()
    recorder.first_call()
    recorder.call_begins("", None, (), {})
    recorder.call_ends("", None, (), None)
    recorder.pass_ended("eval")
    recorder.before_step([])
    recorder.end_step(0)
    recorder.end_window()
    recorder.close()
