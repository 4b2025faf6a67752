from __future__ import annotations

import numpy as np

from nethook.sinks import histograms
from nethook.sinks.histograms import Histograms
from nethook.stats.fields import BINS
from nethook.stats.sheet import Sheet, layout_of

KEYS = [("fc", "outputs"), ("@loop", "grad_norm"), ("fc", "grads")]


def sheet(rows: int, step: int, phase: str = "train") -> Sheet:
    made = Sheet(layout_of([0] * rows), phase)
    made.histograms[:] = np.arange(rows * BINS).reshape(rows, BINS)
    made.add_step(step)
    return made


def test_counts_are_added_up_until_they_are_taken():
    waiting = Histograms()
    waiting.add(sheet(1, 0))
    waiting.add(sheet(3, 1))  # series have come since
    assert list(waiting.take(KEYS)) == []  # it is not time
    taken = dict(waiting.take(KEYS, now=True))
    assert list(taken) == ["outputs/fc", "grads/fc"]  # numbers of the loop have none
    assert (taken["outputs/fc"] == 2 * np.arange(BINS)).all()
    assert waiting.step == 1
    assert list(waiting.take(KEYS, now=True)) == []


def test_other_phases_and_windows_without_them_are_left_out():
    waiting = Histograms()
    waiting.add(sheet(3, 0, "eval"))
    light = sheet(3, 0)
    light.carries = False
    waiting.add(light)
    assert list(waiting.take(KEYS, now=True)) == []


def test_they_are_sent_when_it_is_time(monkeypatch):
    monkeypatch.setattr(histograms, "EVERY", 0.0)
    waiting = Histograms()
    waiting.add(sheet(1, 0))
    assert len(list(waiting.take(KEYS))) == 1
