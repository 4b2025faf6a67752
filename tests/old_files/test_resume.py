"""`watch(resume=True)` in run files of 0.1: all of them go on, and what they have stays as it was.

0.1 could not resume: its files know nothing of sessions.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nethook
from nethook.errors import OtherModelError
from nethook.runs.names import RESUMED
from tests.old_files import models
from tests.old_files.resumed import built, go_on
from tests.old_files.written import RUNS, expected, unpacked

ROOT = Path(__file__).parents[2]
STEPS = {"healthy": 24, "dead": 32, "nan": 8, "gan": 8, "ranks": 10, "killed": 12, "crashed": 10}


def contents(path: Path) -> dict[str, Any]:
    """Everything of a run that is recorded once and for all, as plain data."""
    with nethook.open_run(path) as run:
        series = {
            (info.address, info.quantity, phase): run.series(info.address, info.quantity, phase)
            for info in run.catalogue
            for phase in ("train", "eval", "aux")
        }
        return {
            "rows": {key: one.rows for key, one in series.items()},
            "first": {key: one.first_step for key, one in series.items()},
            "last": {key: one.last_step for key, one in series.items()},
            "steps": {key: one.step for key, one in run.scalars.items()},
            "scalars": {key: one.value for key, one in run.scalars.items()},
            "snapshots": {
                key: [s.values for s in several] for key, several in run.snapshots.items()
            },
            "losses": {"all": [repr(loss) for loss in run.losses]},
            "events": {"all": [(event.step, event.kind, event.message) for event in run.events]},
        }


def check_kept(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Whatever was there is there still, in the same place."""
    for kind, entries in before.items():
        for key, values in entries.items():
            kept = after[kind][key][: len(values)]
            if isinstance(values, list):
                assert len(kept) == len(values)
                assert all(np.array_equal(a, b) for a, b in zip(kept, values, strict=True)), key
            else:
                np.testing.assert_array_equal(kept, values, err_msg=f"{kind} of {key}")


@pytest.mark.parametrize("name", [name for name in RUNS if name != "ranks"])
def test_a_run_goes_on_and_keeps_what_it_has(tmp_path: Path, name: str) -> None:
    path = unpacked(tmp_path, name)
    before, told = contents(path), expected(name)
    steps = STEPS[name]
    losses = go_on(path, built(name))
    after = contents(path)
    check_kept(before, after)
    (line,) = (key for key in after["scalars"] if key.startswith("loss:resumed.py"))
    assert after["scalars"][line].tolist() == losses
    assert after["steps"][line].tolist() == [steps, steps + 1, steps + 2]
    with nethook.open_run(path) as run:
        first, second = run.info["sessions"]
        assert (first["first_step"], first["last_step"]) == (0, steps - 1)
        assert first["closed"] == (name != "killed")
        assert (second["first_step"], second["last_step"]) == (steps, steps + 2)
        (gap,) = (event for event in run.events if event.kind == RESUMED)
        assert gap.message.startswith(f"continued after step {steps - 1}")
        assert run.info["totals"]["steps"] == steps + 3
        assert [rank.state for rank in run.ranks] == ["finished"]
    assert [finding.code for finding in nethook.diagnose(path)] == told["codes"]


def test_steps_are_trained_again(tmp_path: Path) -> None:
    path = unpacked(tmp_path, "healthy")
    before = contents(path)
    go_on(path, built("healthy"), steps=6, step=20)
    after = contents(path)
    for (address, quantity, phase), rows in before["rows"].items():
        if phase == "train" and quantity == "outputs":
            kept = after["rows"][address, quantity, phase]
            np.testing.assert_array_equal(kept[:20], rows[:20])
            assert not np.array_equal(kept[20:24], rows[20:24])
    (old,) = (key for key in before["steps"] if key.startswith("loss:"))
    assert after["steps"][old].tolist() == list(range(20))
    with nethook.open_run(path) as run:
        assert run.info["sessions"][1]["trained_again"] == [20, 23]


def test_another_model_is_refused_by_name_and_the_file_stays_as_it_was(tmp_path: Path) -> None:
    path = unpacked(tmp_path, "healthy")
    before = contents(path)
    other = models.classifier(width=9)
    with pytest.raises(OtherModelError, match=r"'0.weight' has shape \[9, 4\] and had \[8, 4\]"):
        nethook.watch(other, to=path, resume=True)
    after = contents(path)
    check_kept(before, after)
    check_kept(after, before)
    with nethook.open_run(path) as run:
        assert len(run.info["sessions"]) == 1


def test_both_ranks_go_on(tmp_path: Path) -> None:
    path = unpacked(tmp_path, "ranks")
    with nethook.open_run(path) as run:
        before = [run.rank(rank).series("0").rows for rank in range(2)]
    store = tmp_path / "store"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.old_files.resumed", str(path), str(store), str(rank)],
            env=environment,
            cwd=ROOT,
        )
        for rank in range(2)
    ]
    assert [rank.wait(timeout=300) for rank in ranks] == [0, 0]
    with nethook.open_run(path) as run:
        assert [rank.last_step for rank in run.ranks] == [12, 12]
        assert run.series("0").last_step.tolist() == list(range(13))
        for rank, rows in enumerate(before):
            after = run.rank(rank)
            np.testing.assert_array_equal(after.series("0").rows[:10], rows)
            assert [session["first_step"] for session in after.info["sessions"]] == [0, 10]


def test_the_step_that_crashed_is_trained_again_if_asked(tmp_path: Path) -> None:
    """0.1 did not say that step 9 never came to its update."""
    path = unpacked(tmp_path, "crashed")
    losses = go_on(path, built("crashed"), step=9)
    with nethook.open_run(path) as run:
        old, new = (run.scalars[key] for key in sorted(run.scalars) if key.startswith("loss:"))
        assert old.value.tolist() == expected("crashed")["losses"]["train"]
        assert (new.step.tolist(), new.value.tolist()) == ([9, 10, 11], losses)


def test_a_script_goes_on_in_the_run_that_it_crashed_in(tmp_path: Path) -> None:
    path = unpacked(tmp_path, "crashed")
    with nethook.open_run(path) as run:
        (line,) = (key for key in run.scalars if key.startswith("loss:"))
        before = run.scalars[line].value
    script = ROOT / "tests" / "old_files" / "crash.py"
    command = [sys.executable, "-m", "nethook", "run", "--quiet", "--budget", "none"]
    done = subprocess.run(
        [*command, "--to", str(path), "--resume", str(script), "--mended"],
        check=True, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    printed = [float(line) for line in done.stdout.splitlines()]
    with nethook.open_run(path) as run:
        found = run.scalars[line]
        assert found.value[:10].tolist() == before.tolist()
        assert found.value[10:].tolist() == printed
        assert found.step.tolist() == list(range(22))
