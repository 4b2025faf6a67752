"""`/metrics`, scraped by a real Prometheus where there is one.

`apt-get download prometheus && dpkg -x prometheus_*.deb build/prometheus` unpacks one without root.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nethook.exporting.openmetrics import openmetrics
from nethook.page.folder import Folder
from nethook.page.live.serving import start
from nethook.runs.reading.run import open_run
from nethook.runs.writing.writer import RunWriter
from tests.documents import blocks
from tests.figures.shared import training
from tests.page.live.client import Client

ROOT = Path(__file__).parents[3]
UNPACKED = ROOT / "build" / "prometheus" / "usr" / "bin"


def program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(str(UNPACKED / name))


needs = {
    name: pytest.mark.skipif(
        program(name) is None,
        reason=f"{name} is not installed; the Debian package prometheus has it",
    )
    for name in ("prometheus", "promtool")
}


def test_one_run_is_what_the_command_prints():
    client = Client(Folder(training()))
    with open_run(training()) as run:
        expected = openmetrics(run)
    answered = client.get("/metrics")
    assert answered.text == expected
    assert answered.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_a_folder_has_the_runs_that_are_written_and_the_newest(tmp_path):
    for name in ("a", "b", "c"):
        with RunWriter(tmp_path / f"{name}.db") as writer:
            writer.log("grad_norm", 1.0, 0)
        time.sleep(0.01)
    with RunWriter(tmp_path / "live.db") as live:
        live.log("grad_norm", 2.0, 0)
        live.flush()
        with RunWriter(tmp_path / "newest.db") as writer:
            writer.log("grad_norm", 3.0, 0)
        text = Client(Folder(tmp_path)).get("/metrics").text
        families = {family.name: family for family in text_string_to_metric_families(text)}
        norms = families["nethook_train_grad_norm"].samples
        assert {s.labels["run"]: s.value for s in norms} == {"live": 2.0, "newest": 3.0}
        # Each metric stands once, whatever the number of runs.
        assert text.count("# TYPE nethook_train_grad_norm gauge") == 1
        client = Client(Folder(tmp_path))
        folder = Folder(tmp_path)
        [chosen] = [entry.id for entry in folder.entries() if entry.name == "b"]
        one = client.get(f"/metrics?run={quote(chosen)}").text
    assert 'run="b"' in one
    assert 'run="live"' not in one
    assert client.get("/metrics?run=none").status_code == 404


def test_the_token_is_needed():
    client = Client(Folder(training()), token="t" * 43)
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", authorization=f"Bearer {'t' * 43}").status_code == 200


def test_an_empty_folder_has_none(tmp_path):
    answered = Client(Folder(tmp_path)).get("/metrics")
    assert (answered.status_code, answered.text) == (200, "")


@needs["prometheus"]
def test_prometheus_scrapes_it_with_the_token(tmp_path):
    served = start(training(), port=0)
    thread = threading.Thread(target=served.run)
    thread.start()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (tmp_path / "token").write_text(served.token)
    (tmp_path / "prometheus.yml").write_text(
        f"""
scrape_configs:
  - job_name: nethook
    scrape_interval: 1s
    authorization: {{credentials_file: {tmp_path}/token}}
    static_configs: [{{targets: ["127.0.0.1:{served.server.port}"]}}]
"""
    )
    started = subprocess.Popen(
        [
            program("prometheus") or "", f"--config.file={tmp_path}/prometheus.yml",
            f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        [found] = _asked(port, "nethook_train_loss", started)
        with open_run(training()) as run:
            expected = run.loss("train.py:42").last
        assert float(found["value"][1]) == pytest.approx(expected)
        assert found["metric"]["run"] == "training"
        [up] = _asked(port, "up", started)
        assert up["value"][1] == "1"
    finally:
        started.terminate()
        started.wait(20)
        served.stop()
        thread.join(20)


def _asked(port: int, query: str, process: subprocess.Popen[bytes]) -> list[dict]:
    """The answer to a query, as soon as there is one."""
    address = f"http://127.0.0.1:{port}/api/v1/query?query={quote(query)}"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "prometheus has ended"
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:
            found = []
        if found:
            return found
        time.sleep(0.3)
    raise AssertionError(f"prometheus has no {query}")


@needs["promtool"]
def test_promtool_takes_the_metrics_and_the_rules_of_the_docs(tmp_path):
    text = Client(Folder(training())).get("/metrics").content
    checked = subprocess.run(
        [program("promtool") or "", "check", "metrics"], input=text, capture_output=True
    )
    assert checked.returncode == 0, checked.stderr
    page = (ROOT / "docs" / "trackers.md").read_text(encoding="utf-8")
    [rules] = [block.text for block in blocks(page) if "alert:" in block.text]
    (tmp_path / "rules.yml").write_text(rules)
    checked = subprocess.run(
        [program("promtool") or "", "check", "rules", str(tmp_path / "rules.yml")],
        capture_output=True,
    )
    assert checked.returncode == 0, checked.stderr
