"""MLflow: a store in a file, and a server on this machine."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import mlflow
import pytest
from mlflow.tracking import MlflowClient

import nethook
from nethook.sinks.sink import RunFacts
from tests.sinks.trackers.training import problems, sick, train


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store of this test's own, which MLflow is set to."""
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    mlflow.set_tracking_uri(uri)
    yield uri
    mlflow.end_run()
    mlflow.set_tracking_uri(None)


def the_run(client: MlflowClient, experiment: str = "nethook"):
    found = client.get_experiment_by_name(experiment)
    [run] = client.search_runs([found.experiment_id])
    return run


def test_a_run_of_its_own_has_every_step(tmp_path, store):
    done = train(tmp_path / "run.db", [nethook.sinks.sink("mlflow", every=0)])
    assert not problems(done.path)
    client = MlflowClient()
    run = the_run(client)
    history = client.get_metric_history(run.info.run_id, "nethook/scalars/grad_norm")
    assert [point.step for point in history] == list(range(12))
    assert [point.value for point in history] == pytest.approx(done.grad_norms, rel=1e-5)
    losses = client.get_metric_history(run.info.run_id, f"nethook/loss/{done.loss_name}")
    assert [point.value for point in losses] == pytest.approx(done.losses, rel=1e-5)
    assert run.info.run_name == "run"
    assert run.info.status == "FINISHED"
    assert [file.path for file in client.list_artifacts(run.info.run_id, "nethook")] == [
        "nethook/run.html"
    ]


def test_the_active_run_is_used_and_stays_open(tmp_path, store):
    mlflow.set_experiment("mine")
    with mlflow.start_run() as active:
        done = train(
            tmp_path / "run.db",
            [nethook.sinks.sink("mlflow", every=0)],
            each=lambda step, loss: mlflow.log_metric("mine", loss, step=100 * step),
        )
        assert mlflow.active_run().info.run_id == active.info.run_id
    client = MlflowClient()
    run = the_run(client, "mine")
    own = client.get_metric_history(run.info.run_id, "mine")
    assert [point.step for point in own] == [100 * step for step in range(12)]
    assert len(client.get_metric_history(run.info.run_id, "nethook/scalars/grad_norm")) == 12
    assert run.data.tags["nethook.verdict"]
    assert not problems(done.path)


def test_findings_are_tags(tmp_path, store):
    done = sick(tmp_path / "run.db", ["mlflow"])
    tags = the_run(MlflowClient()).data.tags
    with nethook.open_run(done.path) as run:
        for finding in run.findings:
            assert str(finding["message"]) in tags[f"nethook.finding.{finding['code']}"]
    assert "error" in tags["nethook.verdict"]
    assert not problems(done.path)


def test_odd_names_and_values_are_taken(tmp_path, store):
    sink = nethook.sinks.sink("mlflow")
    sink.begin(RunFacts("odd", tmp_path / "odd.db"))
    odd = ("outputs/a[0]", "block/relu#0/grad_norm", "loss/träin.py:3", "layer/(model)/x")
    sink.scalars(1, dict.fromkeys(odd, math.inf) | {"nan": math.nan})
    sink.end("fine", None)
    names = set(the_run(MlflowClient()).data.metrics)
    assert names == {
        "nethook/outputs/a_0_", "nethook/block/relu_0/grad_norm", "nethook/loss/tr_in.py:3",
        "nethook/layer/_model_/x", "nethook/nan",
    }  # fmt: skip


def test_all_sends_quantiles_of_histograms(tmp_path, store):
    done = train(tmp_path / "run.db", ["mlflow:all"])
    metrics = the_run(MlflowClient()).data.metrics
    low, middle, high = (metrics[f"nethook/params/0.weight.q{q}"] for q in ("05", "50", "95"))
    assert low < middle < high
    assert not problems(done.path)


def test_a_server_on_this_machine_gets_it(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port),
        "--backend-store-uri", f"sqlite:///{tmp_path}/server.db", "--workers", "1",
        "--default-artifact-root", str(tmp_path / "artefacts"),
    ]  # fmt: skip
    bin_first = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    server = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "PATH": bin_first}, start_new_session=True,
    )  # fmt: skip
    try:
        uri = f"http://127.0.0.1:{port}"
        _wait_for(f"{uri}/health", server)
        sink = nethook.sinks.sink("mlflow", every=0, tracking_uri=uri)
        done = train(tmp_path / "run.db", [sink])
        assert not problems(done.path)
        client = MlflowClient(tracking_uri=uri)
        run = the_run(client)
        history = client.get_metric_history(run.info.run_id, "nethook/scalars/grad_norm")
        assert [point.value for point in history] == pytest.approx(done.grad_norms, rel=1e-5)
    finally:
        os.killpg(server.pid, 15)
        server.wait(30)


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server has ended"
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError("the server does not answer")
