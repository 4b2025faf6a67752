"""TensorBoard live, read back with its own reader."""

from __future__ import annotations

import os
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import nethook
from nethook.exporting.export import export
from tests.processes import run_whole
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


SCRIPT = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(25):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    optimizer.step()
"""


def test_nethook_run_sends_to_it(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run_whole(
        [
            sys.executable, "-m", "nethook", "run", "--to-tracker", "tensorboard", "--to", "run.db",
            "script.py",
        ],
        cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    events = read(tmp_path / "run-tensorboard")
    [name] = [tag for tag in events.Tags()["scalars"] if tag.startswith("loss/")]
    assert name == "loss/script.py:10"
    assert events.Scalars(name)[-1].step == 24
    assert "verdict/text_summary" in events.Tags()["tensors"]
