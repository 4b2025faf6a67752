"""How large a report of a long run of a deep model is, and how long it takes to write.

    .venv/bin/python benchmarks/report.py            # 20,000 steps of 100 layers: some minutes
    .venv/bin/python benchmarks/report.py 2000

The run is made of random numbers as in benchmarks/scale.py: 1,000 series, 45 findings.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import scale

import nethook
from nethook.runs import names
from nethook.runs.writing.windowing import WindowClock
from nethook.runs.writing.writer import RunWriter

BOUND = 8.0  # MB


def write_run(path: Path, steps: int) -> None:
    """A run of 100 layers with weights and biases, all of which have everything recorded."""
    writer = RunWriter(path)
    for layer in range(scale.LAYERS):
        address = f"blocks.{layer // 4}.layer{layer}"
        own = [f"{address}.weight", f"{address}.bias"]
        info = {"order": layer, "first_call": layer, "parameters": own, "shape": [64, 256]}
        writer.add_site(address, "Linear", info)
        for name in own:
            writer.add_site(name, "Parameter", {"owners": [address], "elements": 65_536})
        writer.add_series(address, names.OUTPUTS, units=scale.UNITS)
        writer.add_series(address, names.GRADS)
        for quantity in (names.PARAMS, names.PARAM_GRADS, names.UPDATES, names.UNCLIPPED):
            for name in own:
                writer.add_series(name, quantity)
    simulation, clock, window = scale.Simulation(), WindowClock(), writer.window()
    while clock.first < steps:
        simulation.fill(window, clock.first, min(clock.end, steps) - clock.first)
        scale.wait_for_room(writer)
        window = writer.submit(window)
        writer.log("loss", 1.0 / (1 + clock.first), clock.first)
        clock.open(min(clock.end, steps))
    finding = {
        "code": "dead-units",
        "severity": "error",
        "sites": [f"blocks.0.layer{layer}" for layer in range(4)],
        "first_step": steps // 2,
        "message": "Most units are silent.",
        "evidence": {"silent": {"value": 0.1, "threshold": 0.05}},
    }
    writer.findings([finding] * 45)
    writer.close(timeout=600)


def main(steps: int) -> None:
    """Print the size of the run and of its report, and the time it took."""
    with tempfile.TemporaryDirectory(dir=".", prefix=".scale-") as folder:
        path = Path(folder).absolute() / "run.db"
        write_run(path, steps)
        begin, work = time.perf_counter(), time.process_time()
        made = nethook.figures.report(path, path.with_suffix(".html"))
        wall, cpu = time.perf_counter() - begin, time.process_time() - work
        print(
            f"{steps:,} steps, {scale.SERIES:,} series: a run of {path.stat().st_size / 1e6:.0f} MB"
        )
        print(
            f"report: {made.stat().st_size / 1e6:.2f} MB (bound: {BOUND:.0f}), "
            f"{wall:.1f} s ({cpu:.1f} cpu)"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
