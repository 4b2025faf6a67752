"""Why a step is not run again."""

from __future__ import annotations

from nethook.examining import experiment
from nethook.examining.refusals import NotReplayableError, OutOfTimeError


def test_experiments_find_them_beside_results():
    assert experiment.NotReplayableError is NotReplayableError
    assert experiment.OutOfTimeError is OutOfTimeError


def test_no_time_is_one_of_them():
    assert issubclass(OutOfTimeError, NotReplayableError)
    assert not issubclass(NotReplayableError, OutOfTimeError)
