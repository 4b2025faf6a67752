"""Starting a trial, and ending it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nethook.running.trying import process
from nethook.running.trying.process import TrialEnd
from tests.running.trying.trials import trial, with_fault


def test_what_a_trial_says_is_read() -> None:
    end = TrialEnd()
    end.read({"began": True, "locked": True})
    end.read({"step": 3})
    assert (end.how, end.step, end.locked) == ("lost", 3, True)
    end.read({"ended": "steps", "error": "", "step": 9, "changed": 9, "notes": ["a"]})
    assert (end.how, end.step, end.changed, end.notes) == ("steps", 9, 9, ["a"])
    end.read({"refused": "forks"})
    assert (end.how, end.error) == ("refused", "forks")


def test_a_script_that_never_ends_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_GRACE", 1.0)
    began = time.monotonic()
    end = trial(tmp_path, "while True: pass", seconds=3).end
    assert (end.how, end.step) == ("killed", 0)
    assert time.monotonic() - began < 60


def test_a_script_that_trains_for_ever_is_ended_in_time(tmp_path: Path) -> None:
    forever = with_fault(("in range(10)", "in iter(int, 1)"))
    made = trial(tmp_path, forever, steps=10**9, seconds=5, warm=True)
    assert made.end.how == "time"
    assert made.end.step > 0
    assert made.losses.steps > 0
