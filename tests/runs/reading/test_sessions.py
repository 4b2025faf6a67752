"""The sessions of a run, from what its file says."""

from __future__ import annotations

import pytest

from nethook.runs.reading.sessions import last_finished_step, sessions_of


def test_a_run_that_was_closed():
    info = {"sessions": [{"started": 1.0, "first_step": 0}], "finished": 9.0, "beat": 8.0}
    wanted = {"started": 1.0, "first_step": 0, "ended": 9.0, "last_step": 4, "closed": True}
    assert sessions_of(info, 4) == [wanted]


def test_one_that_was_killed_ended_with_its_last_beat():
    info = {"sessions": [{"started": 1.0, "first_step": 0}], "beat": 8.0, "unfinished_step": 4}
    (session,) = sessions_of(info, 4)
    assert (session["ended"], session["last_step"], session["closed"]) == (8.0, 3, False)


def test_earlier_sessions_stay_as_they_are():
    first = {"started": 1.0, "first_step": 0, "ended": 2.0, "last_step": 3, "closed": False}
    info = {"sessions": [first, {"started": 5.0, "first_step": 4}], "finished": 9.0}
    sessions = sessions_of(info, 7)
    assert sessions[0] == first
    assert sessions[1]["last_step"] == 7


def test_what_was_read_is_not_changed():
    info = {"sessions": [{"started": 1.0, "first_step": 0}], "finished": 9.0}
    sessions_of(info, 4)
    assert info["sessions"] == [{"started": 1.0, "first_step": 0}]


@pytest.mark.parametrize("sessions", [None, [], "many", [3, None], {"started": 5}])
def test_a_file_that_is_older_or_damaged_has_one(sessions):
    (session,) = sessions_of({"sessions": sessions, "started": 1.0, "finished": 2.0}, 6)
    assert (session["started"], session["first_step"], session["last_step"]) == (1.0, 0, 6)


@pytest.mark.parametrize(
    ("unfinished", "last", "counts"), [(None, 5, 5), (5, 5, 4), (4, 5, 5), (-1, -1, -1), (0, 0, -1)]
)
def test_a_step_that_never_came_to_its_update_does_not_count(unfinished, last, counts):
    assert last_finished_step({"unfinished_step": unfinished}, last) == counts
