"""The thread that talks to sinks: in order, to whom it concerns, and never in the way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from nethook.sinks import sender
from nethook.sinks.sender import Sender, wish_of
from nethook.sinks.sink import RunFacts, Sink

FACTS = RunFacts("run", Path("run.db"))


class Noted(Sink):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.calls: list[Any] = []

    def begin(self, facts: RunFacts) -> None:
        self.calls.append(facts.name)


class Fails(Noted):
    def begin(self, facts: RunFacts) -> None:
        raise OSError("no\n  network")


def note(word: Any) -> Any:
    return lambda sink: sink.calls.append(word)


def test_calls_come_in_order_and_to_whom_they_concern() -> None:
    few, often = Noted(), Noted(every=0)
    sending = Sender([few, often])
    assert not sending.is_at_work
    sending.begin(FACTS)
    sending.begin(FACTS)  # has begun
    assert sending.is_at_work
    sending.put(note(1), 1)
    sending.put(note(2), 2, wish_of(often))
    sending.wait(10)
    assert few.calls == ["run", 1]
    assert often.calls == ["run", 1, 2]
    sending.put(note(3), 3)
    sending.end(note("end"), 10)
    assert often.calls == ["run", 1, 2, 3, "end"]
    assert not sending.is_at_work
    sending.end(note("again"), 10)
    assert few.calls[-1] == "end"
    assert sending.failures == []


def test_the_oldest_go_where_too_many_wait(monkeypatch: Any) -> None:
    monkeypatch.setattr(sender, "WAITING", 3)
    sink = Noted()
    sending = Sender([sink])
    entered, goes_on = threading.Event(), threading.Event()
    sending.begin(FACTS)
    sending.put(lambda _: entered.set() or goes_on.wait(10), 0)
    assert entered.wait(10)
    for number in range(6):
        sending.put(note(number), number)
    goes_on.set()
    sending.end(note("end"), 10)
    assert sink.calls == ["run", 3, 4, 5, "end"]


def test_a_sink_that_fails_is_off_and_the_run_is_told() -> None:
    fails, goes_on = Fails(), Noted()
    sending = Sender([fails, goes_on])
    told: list[Any] = []
    sending.ask_here(lambda sink: 1 / (sink is not goes_on))
    sending.tell_failures(lambda *event: told.append(event))
    assert told == [
        ("sink-failed", 0, "the sink Noted is off: ZeroDivisionError: division by zero")
    ]
    assert sending.sinks == (fails,)
    sending.begin(FACTS)
    sending.put(note(1), 7)
    sending.end(note("end"), 10)
    assert told[1:] == [("sink-failed", told[1][1], "the sink Fails is off: OSError: no network")]
    assert sending.sinks == ()
    assert [failure.message for failure in sending.failures] == [event[2] for event in told]


def test_the_end_waits_no_longer_than_it_is_told() -> None:
    goes_on = threading.Event()
    sending = Sender([Noted()])
    sending.begin(FACTS)
    sending.put(lambda _: goes_on.wait(10), 5)
    sending.end(note("end"), 0.05)
    goes_on.set()
    [failure] = sending.failures
    assert failure == ("sink-failed", 5, "trackers had not taken the end of the run after 0 s")
