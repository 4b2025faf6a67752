"""How much was measured: exact where a run is short, near it where it is sampled."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.figures import coverage as module
from nethook.figures.coverage import coverage, coverage_line
from nethook.figures.reading import Reading
from nethook.runs import names
from nethook.runs.writing.windowing import WindowClock
from nethook.runs.writing.writer import RunWriter
from tests.figures.shared import training
from tests.runs.made import row


@pytest.fixture(scope="module")
def thinned(tmp_path_factory):
    """6,000 steps, of which every fourth was measured, and from step 3,000 on every second."""
    path = tmp_path_factory.mktemp("coverage") / "run.db"
    with RunWriter(path, capacity=100_000) as writer:
        writer.add_series("", names.OUTPUTS)  # the model itself: always measured
        at = writer.add_series("fc", names.OUTPUTS)
        window, clock = writer.window(), WindowClock()
        for step in range(6000):
            if step % (4 if step < 3000 else 2) == 0:
                window.rows[at] = row(np.ones(4))
                window.seen[at] += 1
            window.seen[0] += 1
            window.add_step(step)
            if clock.ends_with(step):
                window = writer.submit(window)
                clock.open(step + 1)
        writer.close(window)
    return path


def test_all_of_a_run_was_measured() -> None:
    reading = Reading(training())
    assert coverage(reading) == 1.0
    assert coverage_line(reading, "gradients") is None
    assert coverage(reading, "nosuch") == 1.0


def test_a_part_of_it_was(thinned, monkeypatch) -> None:
    sampled = coverage(Reading(thinned))
    monkeypatch.setattr(module, "_SHORT", 10**9)
    exact = coverage(Reading(thinned))
    assert exact == pytest.approx(0.375)
    assert sampled == pytest.approx(exact, abs=0.08)
    line = coverage_line(Reading(thinned), "spread")
    assert line is not None
    early, late = np.asarray(line.step) < 3000, np.asarray(line.step) >= 3000
    assert line.value[early].mean() == pytest.approx(0.25, abs=0.03)
    assert line.value[late].mean() == pytest.approx(0.5, abs=0.05)


def test_a_line_of_a_thinned_run_joins_what_was_measured(thinned) -> None:
    line = Reading(thinned).row("spread", "fc")
    assert line is not None
    assert np.isfinite(line.value).all()
    assert len(line.step) < 6000
