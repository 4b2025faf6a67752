"""What clock needs of the session, the session has."""

from __future__ import annotations

import pytest

from nethook.watching.loop import needs
from tests.watching.members import members, protocols_of, watched

SESSIONS = [name for name in protocols_of(needs) if name.endswith("Session")]


def test_the_protocols_are_found():
    assert SESSIONS
    assert set(SESSIONS) < set(protocols_of(needs))


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_offers_what_is_needed(name, tmp_path):
    with watched(tmp_path) as session:
        missing = {
            member for member in members(getattr(needs, name)) if not hasattr(session, member)
        }
    assert missing == set()
