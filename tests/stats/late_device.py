"""A device that is as far as a test says."""

from __future__ import annotations

import pytest
import torch


class Elsewhere(torch.Tensor):
    """A tensor that says it is on another device."""

    @property
    def device(self):
        return torch.device("cuda", 0)

    is_cpu = False
    is_cuda = True


class Event:
    """An event of a device that is as far as the test says."""

    arrived = False
    waited = 0

    def __init__(self, device) -> None:
        assert device.type == "cuda"

    def record(self) -> None:
        pass

    def query(self) -> bool:
        return Event.arrived

    def synchronize(self) -> None:
        Event.waited += 1


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setattr(torch, "Event", Event)
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, pin_memory=False, **k: empty(*a, **k))
    monkeypatch.setattr(Event, "arrived", False)
    monkeypatch.setattr(Event, "waited", 0)
