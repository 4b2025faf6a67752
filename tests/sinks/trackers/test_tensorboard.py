"""TensorBoard live, read back with its own reader."""

from __future__ import annotations

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import nethook
from nethook.exporting.export import export
from tests.sinks.trackers.training import problems, sick, train


def read(folder) -> EventAccumulator:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "histograms": 0})
    return events.Reload()


def test_every_step_is_in_the_file_beside_the_run(tmp_path):
    done = train(tmp_path / "run.db", [nethook.sinks.sink("tensorboard", every=0)])
    events = read(tmp_path / "run-tensorboard")
    points = events.Scalars("scalars/grad_norm")
    assert [point.step for point in points] == list(range(12))
    assert [point.value for point in points] == pytest.approx(done.grad_norms, rel=1e-5)
    losses = events.Scalars(f"loss/{done.loss_name}")
    assert [point.value for point in losses] == pytest.approx(done.losses, rel=1e-5)
    assert not problems(done.path)


def test_all_has_the_tags_and_the_numbers_of_the_export(tmp_path):
    sink = nethook.sinks.sink("tensorboard", detail="all", every=0, folder=tmp_path / "live")
    done = train(tmp_path / "run.db", [sink])
    export(done.path, "tensorboard", tmp_path / "later")
    live, later = read(tmp_path / "live"), read(tmp_path / "later")
    shared = {
        tag
        for tag in later.Tags()["scalars"]
        if not tag.startswith(("scalars/loss:", "scalars/params_", "scalars/batch_"))
    }
    assert shared <= set(live.Tags()["scalars"])
    for tag in ("outputs/0.std", "param_grads/2.weight.max", "scalars/update_ratio"):
        got = [(point.step, point.value) for point in live.Scalars(tag)]
        assert got == [(point.step, point.value) for point in later.Scalars(tag)]
    assert set(live.Tags()["histograms"]) == set(later.Tags()["histograms"])
    counted = sum(sum(p.histogram_value.bucket) for p in live.Histograms("params/0.weight"))
    stored = sum(sum(p.histogram_value.bucket) for p in later.Histograms("params/0.weight"))
    assert counted == stored
    assert not problems(done.path)


def test_findings_and_the_verdict_are_texts(tmp_path):
    done = sick(tmp_path / "run.db", ["tensorboard"])
    events = read(tmp_path / "run-tensorboard")
    with nethook.open_run(done.path) as run:
        codes = {str(finding["code"]) for finding in run.findings}
    assert codes
    texts = set(events.Tags()["tensors"])
    assert texts == {"verdict/text_summary", *(f"findings/{c}/text_summary" for c in codes)}
