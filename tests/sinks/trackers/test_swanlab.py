"""SwanLab, offline: its run folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import swanlab
from swanlab.proto.swanlab.record.v1.record_pb2 import Record

import nethook
from tests.sinks.trackers import leveldb
from tests.sinks.trackers.training import problems, sick, train


@pytest.fixture(autouse=True)
def _offline(monkeypatch, tmp_path):
    monkeypatch.setenv("SWANLAB_MODE", "offline")
    monkeypatch.setenv("SWANLAB_LOG_DIR", str(tmp_path / "swanlog"))
    yield
    if swanlab.has_run():
        swanlab.finish()


def records(folder: Path) -> list[Record]:
    """All records of the one run in a folder."""
    [file] = folder.glob("swanlog/*/*.swanlab")
    return [Record.FromString(data) for data in leveldb.records(file)]


def scalars(read: list[Record], key: str) -> list[tuple[int, float]]:
    found = [each.scalar for each in read if each.HasField("scalar")]
    return sorted((each.step, each.value.number) for each in found if each.key == key)


def test_a_run_of_its_own_has_every_step(tmp_path):
    done = train(tmp_path / "run.db", [nethook.sinks.sink("swanlab", every=0)])
    assert not problems(done.path)
    norms = scalars(records(tmp_path), "nethook/scalars/grad_norm")
    assert [step for step, _ in norms] == list(range(12))
    assert [value for _, value in norms] == pytest.approx(done.grad_norms, rel=1e-5)


def test_the_run_of_the_script_is_used_and_its_axis_is_not_shifted(tmp_path):
    mine = swanlab.init(project="mine")
    done = train(
        tmp_path / "run.db",
        [nethook.sinks.sink("swanlab", every=0)],
        each=lambda step, loss: swanlab.log({"mine": loss}) if step % 2 else None,
    )
    assert swanlab.get_run() is mine
    swanlab.log({"mine": -1.0})
    swanlab.finish()
    assert not problems(done.path)
    read = records(tmp_path)
    own = scalars(read, "mine")
    assert [step for step, _ in own] == list(range(7))
    assert [value for _, value in own] == pytest.approx([*done.losses[1::2], -1.0])
    norms = scalars(read, "nethook/scalars/grad_norm")
    assert [value for _, value in norms] == pytest.approx(done.grad_norms, rel=1e-5)


def test_findings_and_the_verdict_are_texts(tmp_path):
    done = sick(tmp_path / "run.db", ["swanlab"])
    assert not problems(done.path)
    media = {each.media.key for each in records(tmp_path) if each.HasField("media")}
    with nethook.open_run(done.path) as run:
        codes = {str(finding["code"]) for finding in run.findings}
    assert codes
    assert media >= {"nethook/verdict", *(f"nethook/finding/{code}" for code in codes)}
    texts = [file.read_text() for file in tmp_path.glob("swanlog/*/media/text/*.txt")]
    assert any("error" in text for text in texts)


def test_all_sends_histograms_as_charts(tmp_path):
    done = train(tmp_path / "run.db", ["swanlab:all"])
    assert not problems(done.path)
    assert len(list(tmp_path.glob("swanlog/*/media/echarts/*.json"))) >= 12
