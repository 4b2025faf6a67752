"""How a run is, in a word."""

from __future__ import annotations

import pytest

from nethook.page.folder import run_state
from nethook.page.states import STATES


def test_no_state_is_green() -> None:
    assert all(kind != "good" for _, kind, _ in STATES.values())


@pytest.mark.parametrize(
    ("states", "ended", "state"),
    [
        ({"finished"}, None, "finished"),
        ({"finished"}, {"error": "", "interrupted": False}, "finished"),
        ({"finished"}, {"error": "ValueError: x"}, "crashed"),
        ({"finished"}, {"error": "KeyboardInterrupt", "interrupted": True}, "interrupted"),
        ({"died"}, None, "died"),
        ({"died", "finished"}, {"error": "E"}, "crashed"),
        ({"open", "finished"}, {"error": "E"}, "open"),
        (set(), None, "missing"),
        ({"finished"}, "nonsense", "finished"),
    ],
)
def test_how_a_script_ended_is_part_of_it(states: set[str], ended: object, state: str) -> None:
    assert run_state(states, {} if ended is None else {"ended": ended}) == state
    assert state in STATES
