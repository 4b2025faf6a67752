"""What other tests have compiled in this process is none of these tests' business."""

from __future__ import annotations

import pytest

from nethook.examining import keeping


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch):
    """As in a process in which nothing was compiled."""
    monkeypatch.setattr(keeping, "compiled_frames", lambda: 0)
