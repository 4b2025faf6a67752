"""For tests that read single steps: the watch waits for its writer, so that no windows merge."""

from __future__ import annotations

import time

import pytest

from nethook.watching.budget import Budget
from nethook.watching.session import Session


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    end_step = Session.end_step

    def wait(self):
        deadline = time.monotonic() + 10
        writer = self.journal.writer
        while writer.waiting and time.monotonic() < deadline:
            # A few windows do not wake the writer, which would sleep until it is time to commit.
            writer._queue._bell.put(None)
            time.sleep(0.0005)
        end_step(self)

    monkeypatch.setattr(Session, "end_step", wait)
    monkeypatch.setattr(Budget, "may_write", lambda self: True)
