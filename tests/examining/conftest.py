"""What other tests have compiled or drawn in this process is none of these tests' business."""

from __future__ import annotations

import pytest
import torch

from nethook.examining import keeping


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch):
    """As in a process in which nothing was compiled."""
    monkeypatch.setattr(keeping, "compiled_frames", lambda: 0)


@pytest.fixture(autouse=True)
def same_draws():
    """Of four random classes all may be the same, once in a while."""
    torch.manual_seed(0)
