"""What stands around every view."""

from __future__ import annotations

import time

import pytest

from nethook.page.live.frame import age, around, bar, problem_card, state_part
from nethook.page.urls import VIEWS
from tests.page.shown import opened, text_of, where


def test_the_bar_leads_to_every_view_of_the_run() -> None:
    shown = text_of(bar(where(), "training"))
    for view, title in VIEWS.items():
        assert f'"/run/{opened().entry.id}{"/" if view else ""}{view}"' in shown
        assert title in shown
    assert "training" in shown
    assert "inside" in text_of(around(where(), "training", "inside"))


def test_the_state_and_the_last_step_are_said() -> None:
    part = state_part(opened())
    assert part.tag == "finished-119"
    assert "step 119" in text_of(part.make())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "just now"), (0, "just now"), (59, "just now"), (61, "1 min ago"),
        (7200, "2 h ago"), (2 * 86400 + 5, "2 d ago"),
    ],
)  # fmt: skip
def test_an_age_is_rough(seconds: float, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    assert age(1_700_000_000.0 - seconds) == text


def test_what_is_older_has_a_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    assert age(1_690_000_000.0) == "2023-07-22"


def test_a_run_that_cannot_be_read_says_why() -> None:
    broken = opened("broken")
    shown = text_of(problem_card(broken))
    assert "This run cannot be read" in shown
    assert broken.problem
