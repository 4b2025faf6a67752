"""Weights & Biases, offline; its file is read back without it: LevelDB blocks of protobuf."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import wandb
from wandb.proto.wandb_internal_pb2 import Record

import nethook
from tests.sinks.trackers import leveldb
from tests.sinks.trackers.training import problems, sick, train


@pytest.fixture(autouse=True)
def _offline(monkeypatch, tmp_path):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    yield
    wandb.teardown()


def records(folder: Path) -> list[Record]:
    """All records of the one run in a folder."""
    wandb.teardown()  # its service writes the end of the file
    [file] = folder.glob("wandb/offline-run-*/*.wandb")
    return [Record.FromString(data) for data in leveldb.records(file)]


def rows(read: list[Record]) -> list[dict[str, object]]:
    """The rows of the history, each by name."""
    return [
        {
            item.key or ".".join(item.nested_key): json.loads(item.value_json)
            for item in r.history.item
        }
        for r in read
        if r.HasField("history")
    ]


def test_a_run_of_its_own_has_every_step(tmp_path):
    sink = nethook.sinks.sink("wandb", every=0)
    done = train(tmp_path / "run.db", [sink])
    assert not problems(done.path)
    read = records(tmp_path)
    history = [row for row in rows(read) if "nethook/scalars/grad_norm" in row]
    assert [row["nethook/step"] for row in history] == list(range(12))
    assert [row["nethook/scalars/grad_norm"] for row in history] == pytest.approx(
        done.grad_norms, rel=1e-5
    )
    losses = [row[f"nethook/loss/{done.loss_name}"] for row in history]
    assert losses == pytest.approx(done.losses, rel=1e-5)
    axes = {r.metric.glob_name: r.metric.step_metric for r in read if r.HasField("metric")}
    assert axes["nethook/*"] == "nethook/step"
    assert wandb.run is None  # a later wandb.init of the script is its own


def test_the_run_of_the_script_is_used_and_its_axis_is_not_shifted(tmp_path):
    run = wandb.init(project="mine")
    done = train(
        tmp_path / "run.db",
        [nethook.sinks.sink("wandb", every=0)],
        each=lambda step, loss: run.log({"mine/loss": loss}),
    )
    assert wandb.run is run  # still open
    run.finish()
    assert not problems(done.path)
    history = rows(records(tmp_path))
    mine = [row for row in history if "mine/loss" in row]
    assert [row["_step"] for row in mine] == list(range(12))
    assert [row["mine/loss"] for row in mine] == pytest.approx(done.losses)
    ours = [row for row in history if "nethook/scalars/grad_norm" in row]
    for row in ours:  # whichever rows they went with: the numbers are those of their own step
        step = int(row["nethook/step"])
        assert row["nethook/scalars/grad_norm"] == pytest.approx(done.grad_norms[step], rel=1e-5)
    assert ours[-1]["nethook/step"] == 11


def test_findings_are_alerts_and_the_report_is_an_artefact(tmp_path):
    done = sick(tmp_path / "run.db", ["wandb"])
    assert not problems(done.path)
    read = records(tmp_path)
    with nethook.open_run(done.path) as run:
        codes = {str(finding["code"]) for finding in run.findings}
    alerts = {r.alert.title: r.alert for r in read if r.HasField("alert")}
    assert codes
    assert set(alerts) == {f"nethook: {code}" for code in codes}
    assert {alert.level for alert in alerts.values()} & {"ERROR"}
    artefacts = [
        r.request.log_artifact.artifact for r in read if r.request.HasField("log_artifact")
    ]
    artefacts += [r.artifact for r in read if r.HasField("artifact")]
    [files] = [[entry.path for entry in each.manifest.contents] for each in artefacts]
    assert files == ["run.html"]
    summary = {
        i.key or ".".join(i.nested_key): i.value_json for r in read for i in r.summary.update
    }
    assert "error" in summary["nethook/verdict"]


def test_all_sends_histograms_of_at_most_512_bins(tmp_path):
    done = train(tmp_path / "run.db", ["wandb:all"])
    assert not problems(done.path)
    shown = {
        name.removesuffix("._type"): row
        for row in rows(records(tmp_path))
        for name in row
        if name.endswith("._type")
    }
    # Outputs and gradients of 3 layers, 3 quantities of 4 parameters.
    assert len(shown) >= 18
    for name, row in shown.items():
        assert len(row[f"{name}.values"]) + 1 == len(row[f"{name}.bins"]) <= 513
    with nethook.open_run(done.path) as run:
        counts = run.histograms("0.weight", "params").counts.sum()
    assert sum(shown["nethook/params/0.weight"]["nethook/params/0.weight.values"]) == counts
