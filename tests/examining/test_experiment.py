"""Results are plain data, there and back."""

from __future__ import annotations

import json

from nethook.examining.experiment import (
    OUTCOMES,
    NotReplayableError,
    OutOfTimeError,
    Result,
    fine,
    found,
    not_applicable,
    question,
)


class Named:
    name = "samples are independent"

    def applies(self, rehearsal):
        return None

    def run(self, rehearsal):
        return fine(self)


def test_there_and_back():
    result = found(Named(), rows=[1, 2], effect=0.5)
    assert result.outcome == "found"
    stored = json.loads(json.dumps(result.to_dict()))
    assert Result.from_dict(stored) == result


def test_each_outcome():
    made = [
        fine(Named()),
        found(Named()),
        question(Named(), "it may be meant"),
        not_applicable(Named(), "no targets"),
    ]
    assert [result.outcome for result in made] == list(OUTCOMES[:4])
    assert made[2].reason == "it may be meant"


def test_a_file_may_say_anything():
    result = Result.from_dict({"outcome": "splendid", "facts": 3, "seconds": "long"})
    assert result == Result("", "failed")


def test_no_time_is_a_reason_not_to_run():
    assert issubclass(OutOfTimeError, NotReplayableError)
