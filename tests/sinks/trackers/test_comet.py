"""Comet, offline: a zip of JSON lines."""

from __future__ import annotations

import json
import zipfile

import comet_ml
import pytest

import nethook
from tests.sinks.trackers.training import problems, sick, train

QUIET = {
    "log_code": False, "log_graph": False, "auto_param_logging": False,
    "auto_metric_logging": False, "parse_args": False, "auto_output_logging": False,
    "log_env_details": False, "display_summary_level": 0,
}  # fmt: skip


def messages(folder) -> list[dict[str, object]]:
    """What the one experiment in a folder has."""
    [file] = folder.glob("*.zip")
    with zipfile.ZipFile(file) as archive, archive.open("messages.json") as lines:
        return [json.loads(line) for line in lines]


def metrics(folder) -> list[tuple[str, float, object]]:
    found = [m["payload"] for m in messages(folder) if m["type"] == "metric_msg"]
    return [
        (m["metric"]["metricName"], float(m["metric"]["metricValue"]), m["metric"].get("step"))
        for m in found
    ]


def test_an_experiment_of_its_own_has_every_step(tmp_path):
    done = train(tmp_path / "run.db", [nethook.sinks.sink("comet", every=0)])
    assert not problems(done.path)
    norms = [m for m in metrics(tmp_path / "comet") if m[0] == "nethook/scalars/grad_norm"]
    assert [step for _, _, step in norms] == list(range(12))
    assert [value for _, value, _ in norms] == pytest.approx(done.grad_norms, rel=1e-5)


def test_the_experiment_of_the_script_is_used_and_its_axis_is_not_shifted(tmp_path):
    mine = comet_ml.OfflineExperiment(offline_directory=str(tmp_path / "mine"), **QUIET)
    mine.set_step(7)
    done = train(
        tmp_path / "run.db",
        [nethook.sinks.sink("comet", every=0)],
        each=lambda step, loss: mine.log_metric("mine", loss),
    )
    assert comet_ml.get_running_experiment() is mine
    mine.end()
    assert not problems(done.path)
    sent = metrics(tmp_path / "mine")
    own = [(value, step) for name, value, step in sent if name == "mine"]
    assert [value for value, _ in own] == pytest.approx(done.losses)
    assert {step for _, step in own} == {7}
    assert len([m for m in sent if m[0] == "nethook/scalars/grad_norm"]) == 12


def test_findings_are_tags_and_the_report_is_an_asset(tmp_path):
    done = sick(tmp_path / "run.db", ["comet"])
    assert not problems(done.path)
    read = messages(tmp_path / "comet")
    with nethook.open_run(done.path) as run:
        codes = {str(finding["code"]) for finding in run.findings}
    [file] = (tmp_path / "comet").glob("*.zip")
    with zipfile.ZipFile(file) as archive:
        text = json.dumps(read) + archive.read("experiment.json").decode()
    assert codes
    for code in codes:
        assert f"nethook:{code}" in text
    assert "nethook/verdict" in text
    with zipfile.ZipFile(file) as archive:
        heads = [archive.read(name)[:15].lower() for name in archive.namelist()]
    assert b"<!doctype html>" in heads


def test_all_sends_histograms(tmp_path):
    done = train(tmp_path / "run.db", ["comet:all"])
    assert not problems(done.path)
    assert "histogram" in json.dumps(messages(tmp_path / "comet")).lower()
