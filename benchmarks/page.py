"""How soon the page of a very long run answers, in a real browser.

    .venv/bin/python benchmarks/page.py               # 1,000,000 steps of 100 layers: minutes
    .venv/bin/python benchmarks/page.py 10000
    .venv/bin/python benchmarks/page.py --run big.db  # one that is there already, or is made there

The run is made of random numbers as in benchmarks/scale.py (1,000 series), with a loss, gradient
norm and update ratio beside. `nethook ui` serves it; Chromium opens it. Measured: from navigation
to the first figure that is drawn, and from a click to the answer that is drawn. Each is done
several times, the first with nothing of the run in the server's memory.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scale

from nethook.runs import names
from nethook.runs.clock import WindowClock
from nethook.runs.writer import RunWriter
from nethook.stats.fields import INDEX, empty_rows

NAVIGATION, CLICK = 2.0, 0.5  # seconds: the bounds
LOOP = (
    (names.LOOP, names.GRAD_NORM),
    (names.LOOP, names.GRAD_NORM_UNCLIPPED),
    (names.LOOP, names.UPDATE_RATIO),
    (names.loss_address("train.py:42"), names.LOSS),
)


def write_run(path: Path, steps: int) -> None:
    """A run of 100 layers in 25 blocks, with everything recorded, and of its loop."""
    writer = RunWriter(path)
    writer.add_site("", "Net", {"order": 0, "first_call": 0, "leaf": False})
    for layer in range(scale.LAYERS):
        address = f"blocks.{layer // 4}.layer{layer}"
        own = [f"{address}.weight", f"{address}.bias"]
        info = {"order": layer + 1, "first_call": layer + 1, "parameters": own, "leaf": True}
        writer.add_site(address, "Linear", {**info, "shape": [64, 256], "calls": {"train": steps}})
        for name in own:
            writer.add_site(name, "Parameter", {"owners": [address], "elements": 65_536})
        writer.add_series(address, names.OUTPUTS, units=scale.UNITS)
        writer.add_series(address, names.GRADS)
        for quantity in (names.PARAMS, names.PARAM_GRADS, names.UPDATES, names.UNCLIPPED):
            for name in own:
                writer.add_series(name, quantity)
    for address, quantity in LOOP:
        writer.add_series(address, quantity)
    simulation, clock, window = scale.Simulation(), WindowClock(), writer.window()
    while clock.first < steps:
        first, count = clock.first, min(clock.end, steps) - clock.first
        layers: Any = SimpleNamespace(
            rows=window.rows[: scale.SERIES],
            bits=window.bits,
            histograms=window.histograms[: scale.SERIES],
            seen=window.seen[: scale.SERIES],
        )
        simulation.fill(layers, first, count)
        window.first_step, window.last_step, window.steps = first, first + count - 1, count
        _loop(window, count, 2.3 / (1 + first / 5000) + 0.1, simulation.random)
        while writer.waiting:
            time.sleep(0.0005)
        window = writer.submit(window)
        clock.open(min(clock.end, steps))
    findings = [
        {
            "code": "dead-units", "severity": "error", "first_step": steps // 2,
            "last_step": steps - 1, "sites": ["blocks.3.layer12", "blocks.3.layer13"],
            "message": "Most units are silent.", "fix": "Lower the learning rate.",
            "evidence": {"silent": {"value": 0.6, "threshold": 0.5}},
        }
    ]  # fmt: skip
    writer.findings(findings)
    writer.info(diagnosis={"time": time.time(), "seconds": 0.1, "failed": []})
    writer.close(timeout=600)


def _loop(window: Any, steps: int, loss: float, random: np.random.Generator) -> None:
    """One number a step for the loop: its moments over the window."""
    means = np.array([1.0, 3.0, 1e-3, loss]) * random.lognormal(0, 0.05, len(LOOP))
    for at, mean in enumerate(means, start=scale.SERIES):
        row = empty_rows(1)[0]
        row[INDEX["tensors"]] = row[INDEX["count"]] = steps
        row[INDEX["mean"]], row[INDEX["m2"]] = mean, steps * (0.1 * mean) ** 2
        row[INDEX["min"]], row[INDEX["max"]] = 0.5 * mean, 2.0 * mean
        window.rows[at], window.seen[at] = row, steps
