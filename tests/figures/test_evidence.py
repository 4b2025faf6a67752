"""What shows a finding."""

from __future__ import annotations

import pytest

from nethook.drawing.rendering.render import figure
from nethook.figures.evidence import finding_specs
from nethook.figures.reading import Reading
from nethook.text.findings import read_findings
from tests.figures.made import FINDINGS
from tests.figures.shared import training

CODES = [
    "missing-step", "missing-zero-grad", "gradient-wiped", "optimizer-misses-parameters",
    "no-gradient", "eval-mode-training", "train-mode-evaluation", "clipped-before-unscale",
    "unscaled-accumulation", "scheduler-collapse", "softmax-before-cross-entropy",
    "loss-target-mismatch", "loss-broadcast", "negative-loss", "output-range",
    "input-not-normalized", "input-collapsed", "input-ignored", "repeated-batch", "symmetric-init",
    "bad-init-scale", "missing-activation", "learning-rate-too-high", "learning-rate-too-low",
    "oscillating-loss", "weight-decay-too-strong", "clipping-too-tight", "adam-instability",
    "batchnorm-small-batch", "dead-units", "saturated-activation", "vanishing-gradient",
    "exploding-gradient", "non-finite", "class-collapse", "not-learning", "overfitting",
    "replica-divergence",
]  # fmt: skip


@pytest.fixture(scope="module")
def reading():
    return Reading(training())


def specs(reading, **fields):
    (finding,) = read_findings([{**FINDINGS[0], **fields}])
    return finding_specs(reading, finding)


def test_threshold_and_onset_are_drawn_on_the_number_itself(reading):
    (spec,) = specs(reading)
    made = figure(spec)
    threshold = [shape for shape in made.layout.shapes if shape.xref == "paper"]
    assert [(shape.yref, shape.y0) for shape in threshold] == [("y", 0.5)]
    assert {shape.x0 for shape in made.layout.shapes if shape.xref == "x"} == {60}
    (band,) = [shape for shape in made.layout.shapes if shape.type == "rect"]
    assert (band.x0, band.x1) == (60, 119)
    assert "dead units of block.relu2" in made.layout.annotations[0].text
    assert "since step 60" in [note.text for note in made.layout.annotations]


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_something_that_shows_it(reading, code):
    found = specs(reading, code=code, sites=["conv1", "relu1"])
    assert found
    assert all(spec["data"] for spec in found)


def test_what_is_about_depth_has_a_profile(reading):
    _, profile = specs(reading, code="vanishing-gradient", sites=["conv1"])
    made = figure(profile)
    assert [trace.name for trace in made.data] == ["step 0", "step 60", "step 119"]
    assert made.data[0].y[0] == "conv1"


def test_a_threshold_of_another_number_is_not_drawn(reading):
    (spec,) = specs(reading, evidence={"units": {"value": 24, "threshold": 8}})
    assert [shape for shape in spec["layout"]["shapes"] if shape.get("xref") == "paper"] == []


def test_evidence_can_say_itself_what_shows_it(reading):
    evidence = {"x": {"value": 1, "threshold": 0.9, "quantity": "spread"}}
    (spec,) = specs(reading, code="my-own", sites=["fc1"], evidence=evidence)
    assert "spread of outputs of fc1" in spec["layout"]["annotations"][0]["text"]
    assert [s["y0"] for s in spec["layout"]["shapes"] if s.get("xref") == "paper"] == [0.9]
    evidence = {"x": {"value": 1, "threshold": 7.0, "quantity": "gradient_norm"}}
    (spec,) = specs(reading, code="my-own", sites=[], evidence=evidence)
    assert [s["yref"] for s in spec["layout"]["shapes"] if s.get("xref") == "paper"] == ["y2"]


def test_more_sites_than_colours_are_counted(reading):
    layers = ("conv1", "block.conv2", "fc1", "fc2")
    sites = [f"{layer}.{kind}" for layer in layers for kind in ("weight", "bias")]
    spec = specs(reading, code="no-gradient", sites=sites)[0]
    assert "2 more not drawn" in spec["layout"]["annotations"][0]["text"]


def test_a_module_is_shown_by_its_parameters(reading):
    spec = specs(reading, code="no-gradient", sites=["fc1"])[0]
    assert "fc1.weight" in spec["layout"]["annotations"][0]["text"]


def test_a_finding_without_steps_or_numbers(reading):
    assert specs(reading, code="unused-module", sites=["spare"], first_step=None) == []
    (spec,) = specs(reading, first_step=None, last_step=None, sites=["nobody"])
    assert spec["layout"]["shapes"] == []
