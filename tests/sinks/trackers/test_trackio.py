"""trackio, which is local: its database is read with sqlite3."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
from pathlib import Path

import pytest

import nethook
from tests.sinks.trackers.training import problems, sick, train

assert "trackio" not in sys.modules  # it reads where its folder is when it is imported
FOLDER = Path(tempfile.mkdtemp(prefix="trackio-"))
os.environ["TRACKIO_DIR"] = str(FOLDER)

import trackio  # noqa: E402


@pytest.fixture
def project(request):
    """A project of this test's own."""
    return request.node.name.replace("_", "-")[:40]


def read(project: str, query: str) -> list[tuple[object, ...]]:
    [file] = FOLDER.glob(f"{project}*.db")
    connection = sqlite3.connect(file)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def metrics(project: str) -> list[tuple[str, int, dict[str, object]]]:
    stored = read(project, "SELECT run_name, step, metrics FROM metrics ORDER BY step")
    return [(run, step, json.loads(values)) for run, step, values in stored]


def test_a_run_of_its_own_has_every_step(tmp_path, project):
    done = train(tmp_path / "run.db", [nethook.sinks.sink("trackio", every=0, project=project)])
    assert not problems(done.path)
    rows = [row for row in metrics(project) if "nethook/scalars/grad_norm" in row[2]]
    assert [step for _, step, _ in rows] == list(range(12))
    assert {run for run, _, _ in rows} == {"run"}
    norms = [values["nethook/scalars/grad_norm"] for _, _, values in rows]
    assert norms == pytest.approx(done.grad_norms, rel=1e-5)


def test_the_run_of_the_script_is_used_and_its_axis_is_not_shifted(tmp_path, project):
    mine = trackio.init(project=project, name="script", auto_log_cpu=False)
    done = train(
        tmp_path / "run.db",
        [nethook.sinks.sink("trackio", every=0)],
        each=lambda step, loss: trackio.log({"mine": loss}) if step % 2 else None,
    )
    trackio.log({"mine": -1.0})  # it is still open
    trackio.finish()
    assert not problems(done.path)
    rows = metrics(project)
    assert {run for run, _, _ in rows} == {"script"}
    own = [(step, values["mine"]) for _, step, values in rows if "mine" in values]
    assert own == [*enumerate(pytest.approx(loss) for loss in done.losses[1::2]), (6, -1.0)]
    ours = [step for _, step, values in rows if "nethook/scalars/grad_norm" in values]
    assert ours == list(range(12))
    ids = read(project, "SELECT DISTINCT run_id FROM metrics")
    assert ids == [(mine.id,)]


def test_findings_are_alerts_and_the_report_is_an_artefact(tmp_path, project):
    done = sick(tmp_path / "run.db", [nethook.sinks.sink("trackio", project=project)])
    assert not problems(done.path)
    alerts = dict(read(project, "SELECT title, level FROM alerts"))
    with nethook.open_run(done.path) as run:
        codes = {str(finding["code"]) for finding in run.findings}
    assert set(alerts) == {"nethook: verdict", *(f"nethook: {code}" for code in codes)}
    assert "error" in alerts.values()
    found = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert any(path.read_bytes()[:15].lower() == b"<!doctype html>" for path in found)


def test_all_sends_histograms(tmp_path, project):
    done = train(
        tmp_path / "run.db", [nethook.sinks.sink("trackio", detail="all", project=project)]
    )
    shown = [
        value
        for _, _, values in metrics(project)
        for value in values.values()
        if isinstance(value, dict) and "histogram" in str(value.get("_type"))
    ]
    assert len(shown) >= 12
    assert not problems(done.path)
