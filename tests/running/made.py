"""A small run file, written as a watch writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nethook.runs import names
from nethook.runs.reading.run import Run, open_run
from nethook.runs.writing.writer import RunWriter
from tests.runs.made import row as numbers_of

LOSSES = [2.5, 1.5, 0.25]


def made(path: Path, **more: Any) -> Run:
    """A run of three steps, as a watch writes it, and whatever `more` adds with the writer."""
    import numpy as np

    writer = RunWriter(path, flush_every=0.05, capacity=1000)
    writer.info(
        models={"": {"type": "Net", "parameters": 10}},
        totals={"steps": 3},
        clock="optimizer",
        overhead=0.0214,
    )
    for address in ("fc1", "relu", "fc2"):
        info = {"leaf": True, "activation": "rectifier" if address == "relu" else "linear"}
        writer.add_site(address, "Linear", info)
    loss = writer.add_series(names.loss_address("train.py:7"), names.LOSS)
    relu = writer.add_series("relu", names.OUTPUTS, units=4)
    window = writer.window()
    for step, value in enumerate([*LOSSES, *more.get("longer", ())]):
        window.rows[loss] = numbers_of(np.array([value]))
        window.rows[relu] = numbers_of(np.ones(4))
        window.bits_of(relu)[: 1 if more.get("silent") else 4] = 1
        window.seen[:] += 1
        window.add_step(step)
        window = writer.submit(window)
        writer.log(names.loss_name("train.py:7"), value, step, keep=names.KEPT_STEPS)
        writer.log(names.GRAD_NORM, value * 2, step, keep=names.KEPT_STEPS)
    for name, step, value in more.get("scores", ()):
        writer.log(names.score_name(name), value, step, keep=names.KEPT_STEPS)
    for event in more.get("events", ()):
        writer.event(*event)
    if "findings" in more:
        writer.findings(more["findings"])
    writer.info(**more.get("info", {}))
    writer.close()
    return open_run(path)
