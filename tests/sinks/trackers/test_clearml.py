"""ClearML, offline: its session folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clearml import Task

import nethook
from tests.sinks.trackers.training import problems, sick, train


@pytest.fixture(autouse=True)
def _offline(monkeypatch, tmp_path):
    monkeypatch.setenv("CLEARML_CACHE_DIR", str(tmp_path / "cache"))
    Task.set_offline(True)
    yield
    if (task := Task.current_task()) is not None:
        task.close()


@pytest.fixture
def sessions(monkeypatch):
    """The folders of the tasks that were closed."""
    folders = []
    close = Task.close

    def closed(task, *args, **kwargs):
        folders.append(Path(task.get_offline_mode_folder()))
        return close(task, *args, **kwargs)

    monkeypatch.setattr(Task, "close", closed)
    return folders


def scalars(folder: Path) -> list[tuple[str, int, float]]:
    found = []
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        for entry in json.loads(line):
            if "value" in entry:
                found.append(
                    (f"{entry['metric']}/{entry['variant']}", entry["iter"], entry["value"])
                )
    return found


def test_a_task_of_its_own_has_every_step(tmp_path, sessions):
    done = train(tmp_path / "run.db", [nethook.sinks.sink("clearml", every=0, offline=True)])
    assert not problems(done.path)
    [folder] = sessions
    norms = sorted((s, v) for n, s, v in scalars(folder) if n == "nethook/scalars/grad_norm")
    assert [step for step, _ in norms] == list(range(12))
    assert [value for _, value in norms] == pytest.approx(done.grad_norms, rel=1e-5)


def test_the_task_of_the_script_is_used(tmp_path, sessions):
    task = Task.init(
        project_name="mine", task_name="script", auto_connect_frameworks=False,
        auto_connect_arg_parser=False, auto_connect_streams=False, auto_resource_monitoring=False,
    )  # fmt: skip
    done = train(
        tmp_path / "run.db",
        [nethook.sinks.sink("clearml", every=0)],
        each=lambda step, loss: task.get_logger().report_scalar("mine", "loss", loss, 3 * step),
    )
    assert Task.current_task() is task
    task.close()
    assert not problems(done.path)
    sent = scalars(sessions[0])
    own = sorted((step, value) for name, step, value in sent if name == "mine/loss")
    assert [step for step, _ in own] == [3 * step for step in range(12)]
    assert [value for _, value in own] == pytest.approx(done.losses)
    assert len([s for s in sent if s[0] == "nethook/scalars/grad_norm"]) == 12


def test_findings_are_tags_and_the_report_is_an_artefact(tmp_path, sessions):
    done = sick(tmp_path / "run.db", [nethook.sinks.sink("clearml", offline=True)])
    assert not problems(done.path)
    [folder] = sessions
    task = (folder / "task.json").read_text()
    with nethook.open_run(done.path) as run:
        codes = {str(finding["code"]) for finding in run.findings}
    assert codes
    for code in codes:
        assert f"nethook:{code}" in task
    assert "nethook-report" in task
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.read_bytes()[:15].lower() == b"<!doctype html>" for path in files)
    assert "error" in (folder / "log.jsonl").read_text()


def test_all_sends_histograms(tmp_path, sessions):
    sink = nethook.sinks.sink("clearml", detail="all", offline=True)
    done = train(tmp_path / "run.db", [sink])
    assert not problems(done.path)
    text = (sessions[0] / "metrics.jsonl").read_text()
    assert "nethook/params" in text
    assert '"plot_str"' in text
