"""What recorders are told: each method goes to those that override it."""

from __future__ import annotations

from nethook.watching.recorder import Recorder, Recorders


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
    methods = {name for name in vars(Recorder) if not name.startswith("_")}
    assert methods == {name for name in vars(Recorders()) if not name.startswith("_")}


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
