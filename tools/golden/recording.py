"""Runs a script under one version of nethook, and reads all that it recorded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, Final

from tools.golden.sources import ROOT

# For the processes that a script starts: without the finder of an editable install.
NO_EDITABLE: Final = """\
import sys
sys.meta_path[:] = [each for each in sys.meta_path if "_editable_" not in type(each).__module__]
"""


def recorded(command: str, sources: Path, budget: str) -> dict[str, Any]:
    """Runs a script under the nethook in `sources`; every run that it made, as plain data."""
    folder = Path(tempfile.gettempdir()) / "nethook-golden"  # the same for both: runs hold paths
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "tests" / "scripts", folder / "scripts")
    words = command.split()
    (folder / "sitecustomize.py").write_text(NO_EDITABLE)
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    environment = {
        **os.environ,
        # An editable install finds its own sources before any path: hence -S. The processes that
        # a script starts have no -S.
        "PYTHONPATH": os.pathsep.join([str(folder), str(sources), *libraries]),
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
    }
    run = [sys.executable, "-S", "-m", "nethook", "run", "--quiet", "--budget", budget]
    subprocess.run(
        [*run, "--to", str(folder / "run.db"), *words],
        cwd=folder / "scripts",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=600,
    )
    return {
        path.name: contents(path)
        for path in sorted(folder.glob("run*.db"))
        if not re.search(r"\.rank\d+\.db$", path.name)
    }


def contents(path: Path) -> dict[str, Any]:
    """All of a run, as plain data."""
    import nethook
    from nethook.runs.names import score_name

    with nethook.open_run(path) as run:
        scored = {
            loss.name
            for loss in run.losses
            if loss.phase == "eval" and score_name(loss.name) in run.scalars
        }
        series: dict[str, Any] = {}
        for info in run.catalogue:
            key = info.address, info.quantity
            for phase in ("train", "eval", "aux"):
                one = run.series(*key, phase)
                if not len(one):
                    continue
                histograms, units = run.histograms(*key, phase), run.units(*key, phase)
                spans = zip(one.first_step, one.last_step, strict=True)
                numbers = zip(one.steps, one.seen, one.rows, strict=True)
                series[f"{info.address} {info.quantity} {phase}"] = {
                    "windows": {
                        f"{first}-{last}": {
                            "steps": int(steps),
                            "seen": int(seen),
                            "row": row.tolist(),
                        }
                        for (first, last), (steps, seen, row) in zip(spans, numbers, strict=True)
                    },
                    "histograms": spans_of(histograms, histograms.counts, histograms.counts.any(1)),
                    "active": spans_of(units, units.active, units.measured),
                }
        return {
            "info": run.info,
            "sites": {site.address: site.info for site in run.sites},
            "series": series,
            "scalars": {
                name: points_of(scalar.step.tolist(), scalar.value.tolist())
                for name, scalar in run.scalars.items()
            },
            "snapshots": {
                address: {kept.step: kept.values.tolist() for kept in several}
                for address, several in run.snapshots.items()
            },
            "losses": [vars_of(loss) for loss in run.losses if loss.name not in scored],
            "answers": {
                f"{loss.name} {loss.step}": vars_of(loss)
                for loss in run.losses
                if loss.name in scored
            },
            "events": [[event.step, event.kind, event.address, event.data] for event in run.events],
            "findings": [dict(finding) for finding in run.findings],
        }


def spans_of(spans: Any, rows: Any, filled: Any) -> dict[str, list[float]]:
    """The rows of spans in which something was measured, by their steps."""
    steps = zip(spans.first_step, spans.last_step, rows, filled, strict=True)
    return {f"{first}-{last}": row.tolist() for first, last, row, is_filled in steps if is_filled}


def points_of(steps: list[int], values: list[float]) -> dict[int, list[float]]:
    """The values of a scalar by step, of which some have several."""
    points: dict[int, list[float]] = {}
    for step, value in zip(steps, values, strict=True):
        points.setdefault(step, []).append(value)
    return points


def vars_of(record: object) -> dict[str, Any]:
    """The fields of a record."""
    import dataclasses

    assert dataclasses.is_dataclass(record)
    assert not isinstance(record, type)
    return dataclasses.asdict(record)
