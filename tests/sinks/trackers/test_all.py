"""The programs of docs/trackers.md, `nethook run --to-tracker`, and what was tested: for a table.

Only where every tracker is installed: `make trackers`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nethook
from nethook.sinks.known import TRACKERS
from tests.documents import blocks
from tests.sinks.trackers.training import problems

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "trackers.md").read_text(encoding="utf-8")
PROGRAMS = {block.title: block.text for block in blocks(PAGE) if block.language == "py"}
TABLE = ROOT / "build" / "integrations.json"

# What each program leaves behind.
LEFT = {
    "wandb": "wandb/offline-run-*/*.wandb",
    "tensorboard": "runs/mnist-tensorboard/events.*",
    "mlflow": "mlflow.db",
    "trackio": "trackio/mnist.db",
    "comet": "runs/comet/*.zip",
    "clearml": "home/.clearml/cache/offline/*.zip",
    "swanlab": "swanlog/*/*.swanlab",
}


def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ, "HOME": str(tmp_path / "home"), "TRACKIO_DIR": str(tmp_path / "trackio"),
        "WANDB_MODE": "offline", "WANDB_SILENT": "true", "OMP_NUM_THREADS": "1",
    }  # fmt: skip


def test_the_page_has_a_program_for_every_tracker():
    assert set(PROGRAMS) == {"train", *TRACKERS} == {"train", *LEFT}


@pytest.mark.parametrize("name", LEFT)
def test_a_program_of_the_page_runs(name, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"{PROGRAMS['train']}\n\n{PROGRAMS[name]}")
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env=environment(tmp_path),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    ok = done.returncode == 0 and "the sink " not in done.stderr
    assert ok, done.stderr[-3000:]
    [path] = (tmp_path / "runs").glob("*.db")
    assert not problems(path)
    assert list(tmp_path.glob(LEFT[name])), [str(p) for p in tmp_path.rglob("*")][:50]
    note(name)


def test_nethook_run_uses_the_run_of_the_script(tmp_path):
    program = tmp_path / "script.py"
    program.write_text(
        f"import wandb\n{PROGRAMS['train']}\n\nrun = wandb.init(project='mine')\n"
        "train(log=lambda loss: run.log({'loss': loss}))\n"  # it ends with the program
    )
    done = subprocess.run(
        [sys.executable, "-m", "nethook", "run", "--to-tracker", "wandb,tensorboard",
         "--to", "runs/script.db", "script.py"],
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert not problems(tmp_path / "runs" / "script.db")
    assert list(tmp_path.glob("runs/script-tensorboard/events.*"))
    [file] = tmp_path.glob("wandb/offline-run-*/*.wandb")
    data = file.read_bytes()
    assert b"nethook/verdict" in data
    assert b"nethook/scalars/grad_norm" in data


def note(name: str) -> None:
    """Keeps a row for the table of integrations."""
    tracker = TRACKERS[name]
    rows = json.loads(TABLE.read_text()) if TABLE.exists() else []
    rows = [row for row in rows if (row["kind"], row["name"]) != ("tracker", name)]
    gets = "loss, norms, rates, blocks, worst layers; findings; verdict"
    if nethook.sinks.sink(name).wants_report:
        gets += "; report"
    version = importlib.metadata.version(tracker.package)
    rows.append({"kind": "tracker", "name": name, "version": version, "gets": gets, "passed": True})
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(json.dumps(sorted(rows, key=lambda r: (r["kind"], r["name"])), indent=1))
