"""A section is one file and one template, and the same for the page and for the report."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

import nethook.page
from nethook.page.section import Section
from nethook.page.sections import cost, depth, findings, layer, layers, loop, model, ran, verdict
from nethook.page.urls import Place
from tests.page.shown import figures_of, html_of, in_report, subject, where

ROOM = Path(str(resources.files(nethook.page)))
HELPERS = {"__init__", "about"}  # of sections, and none themselves
FRAMES = {
    "macros",
    "report",
    "shell",
    "view",
    "state",
    "note",
    "few",
    "studies",
}  # what stands around them


def test_every_section_has_one_file_and_one_template() -> None:
    files = {path.stem for path in (ROOM / "sections").glob("*.py")} - HELPERS
    templates = {path.stem for path in (ROOM / "templates").glob("*.html")} - FRAMES
    assert files == templates
    assert {"verdict", "findings", "loop", "layers", "depth", "layer", "model"} <= files
    assert {"comparison", "ran", "cost", "pictures", "runs"} <= files


def test_sections_of_one_kind_share_a_template() -> None:
    assert Section("layer-12", "", dict).template == "layer.html"


BOTH = {
    "verdict": (lambda: verdict.verdict(subject()), lambda: verdict.verdict(in_report())),
    "findings": (lambda: findings.findings(subject()), lambda: findings.findings(in_report())),
    "loop": (lambda: loop.loop(subject(), where()), lambda: loop.loop(in_report(), Place("run"))),
    "layers": (
        lambda: layers.layers(subject(), where()),
        lambda: layers.all_layers(in_report(), 60),
    ),
    "depth": (
        lambda: depth.depth(subject(), where(), [], None),
        lambda: depth.all_depths(in_report()),
    ),
    "layer": (
        lambda: layer.layer(subject(), where("?at=conv1"), "conv1"),
        lambda: layer.folded_layer(in_report(), 0, "conv1", 64),
    ),
    "model": (lambda: model.model(subject()), lambda: model.model(in_report())),
    "ran": (lambda: ran.ran(subject()), lambda: ran.ran(in_report())),
    "cost": (lambda: cost.cost(subject()), lambda: cost.cost(in_report())),
}  # fmt: skip


@pytest.mark.parametrize("name", BOTH)
def test_every_section_is_made_for_the_page_and_for_the_report(name: str) -> None:
    for live, make in zip((True, False), BOTH[name], strict=True):
        section = make()
        drawn = {key for key, spec in figures_of(section).items() if spec is not None}
        shown = html_of(section, live=live, drawn=drawn)
        assert "cannot be shown" not in shown
        for figure in drawn:
            assert f'id="frame-{figure}"' in shown  # every figure has its place
        assert ('href="/' in shown) <= live  # a report leads nowhere else
