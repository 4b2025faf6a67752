"""Looking for models may take a second, and then a share of the time."""

from __future__ import annotations

import time

import pytest

from nethook.running.detecting.allowance import FREE, PASSES, SHARE, Allowance


def test_a_second_is_free_and_then_a_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"work": 0.0, "all": 100.0}
    monkeypatch.setattr(time, "thread_time", lambda: clock["work"])
    monkeypatch.setattr(time, "monotonic", lambda: clock["all"])
    allowance = Allowance()
    with allowance.looking():
        clock["work"] += FREE
    assert not allowance.is_used_up
    with pytest.raises(KeyError), allowance.looking():  # what fails has taken its time as well
        clock["work"] += 0.5
        raise KeyError
    assert allowance.is_used_up
    clock["all"] += 0.5 / SHARE - 1
    assert allowance.is_used_up
    clock["all"] += 2
    assert not allowance.is_used_up


def test_some_backward_passes_are_looked_at_for_each_new_module() -> None:
    allowance = Allowance()
    for _ in range(2):
        for _ in range(PASSES):
            assert allowance.has_passes
            allowance.take_pass()
        assert not allowance.has_passes
        allowance.renew_passes()
