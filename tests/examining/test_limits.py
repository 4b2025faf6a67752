"""What examinations may cost."""

from __future__ import annotations

import time

import pytest
import torch

from nethook.examining import limits
from nethook.examining.limits import Deadline, free_bytes, seconds_left, why_too_large


@pytest.mark.parametrize(
    ("elapsed", "spent", "left"),
    [(1.0, 0.0, 1.0), (150.0, 0.0, 1.5), (1e6, 0.0, 2.0), (150.0, 0.4, 1.1), (1.0, 5.0, 0.0)],
)
def test_a_hundredth_of_the_run_within_bounds(elapsed, spent, left):
    assert seconds_left(elapsed, spent) == pytest.approx(left)


def test_half_of_what_is_free(monkeypatch):
    monkeypatch.setattr(limits, "free_bytes", lambda device=None: 4 << 30)
    assert why_too_large(2 << 30) == ""
    assert why_too_large((2 << 30) + 1) == "it would take 2.0 GB more, and 4.0 GB are free"


def test_nobody_knows_what_is_free(monkeypatch):
    monkeypatch.setattr(limits, "free_bytes", lambda device=None: None)
    assert why_too_large(1 << 60) == ""


def test_this_machine_has_memory():
    free = free_bytes(torch.device("cpu"))
    assert free is None or 0 < free < 1 << 50


def test_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 300\n")
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 16 kB\nMemAvailable: 8 kB\n")
    monkeypatch.setattr(limits, "_CGROUP", tmp_path)
    monkeypatch.setattr(limits, "_MEMINFO", meminfo)
    assert free_bytes() == 400
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes() == 8192
    meminfo.unlink()
    assert free_bytes() is None


def test_a_deadline_is_of_work_and_of_the_clock():
    assert Deadline(100.0, 0.0).left() <= 0
    assert Deadline(0.0, 100.0).left() <= 0
    waited = Deadline(5.0, 50.0)
    before = waited.left()
    time.sleep(0.05)
    assert before - waited.left() < 0.04  # waiting is no work
