"""Loss and loop: every number that is kept, along the axis that is chosen."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest

from nethook.drawing.rendering.render import payload
from nethook.figures.reading import Reading
from nethook.page.report.links import ReportLinks
from nethook.page.section import Subject
from nethook.page.sections.loop import curves_spec, loop
from nethook.runs import names
from nethook.runs.writing.writer import RunWriter
from tests.page.shown import html_of, in_report, reading, subject, where

STEPS = 3000


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """A run of 3,000 losses with one spike."""
    path: Path = tmp_path_factory.mktemp("loop") / "a.db"
    with RunWriter(path, capacity=100_000) as writer:
        for step in range(STEPS):
            loss = 2.0 / (1 + step / 100) + (50.0 if step == 1234 else 0.0)
            writer.log(names.loss_name("train.py:1"), loss, step, keep=names.KEPT_STEPS)
            writer.log(names.GRAD_NORM, 1.0 + step % 7, step, keep=names.KEPT_STEPS)
            writer.log("epoch", step / 500, step)
    return Subject(Reading(path), ReportLinks({}), "a")


def line_of(spec: dict, name: str) -> dict:
    (found,) = (trace for trace in spec["data"] if trace.get("name") == name)
    return found


def test_every_kept_loss_is_drawn_with_the_number_of_the_file() -> None:
    drawn = line_of(curves_spec(subject()), "training")
    loss = reading().run.loss("train.py:42")
    np.testing.assert_array_equal(drawn["x"], loss.step)
    np.testing.assert_array_equal(drawn["y"], loss.shown)
    sent = line_of(payload(curves_spec(subject())), "training")["y"]
    found = np.frombuffer(base64.b64decode(sent["bdata"]), f"<{sent['dtype']}")
    np.testing.assert_allclose(found, loss.shown, rtol=1e-6)


def test_above_a_thousand_points_no_extreme_is_lost(long: Subject) -> None:
    spec = curves_spec(long)
    drawn = line_of(spec, "training")
    assert len(drawn["x"]) == 1000
    band = [trace for trace in spec["data"] if trace.get("hoverinfo") == "skip"]
    loss = long.reading.run.loss().shown
    assert max(float(np.max(trace["y"])) for trace in band) == loss.max()
    assert min(float(np.min(trace["y"])) for trace in band[:1]) == loss.min()


def test_the_gradient_norm_is_drawn_to_its_last_step(long: Subject) -> None:
    drawn = line_of(curves_spec(long, (2500, STEPS)), "as used")
    assert drawn["x"][-1] == STEPS - 1
    np.testing.assert_array_equal(drawn["y"], 1.0 + drawn["x"] % 7)


def test_a_part_is_as_fine_as_it_is_kept(long: Subject) -> None:
    drawn = line_of(curves_spec(long, (1200, 1300)), "training")
    np.testing.assert_array_equal(drawn["x"], np.arange(1199, 1302))
    np.testing.assert_array_equal(drawn["y"], long.reading.run.loss().shown[1199:1302])


def test_the_axis_can_be_time_or_epochs_where_the_run_has_them(long: Subject) -> None:
    shown = html_of(loop(long, where("?x=epoch&smooth=60&log=log")))
    assert '<option value="epoch" selected>' in shown
    assert '<option value="time">' in shown
    assert 'data-param="smooth" data-value="60"' in shown
    assert '<option value="log" selected>' in shown
    plain = html_of(loop(subject(), where("?x=nonsense&smooth=-3&log=x")))
    assert 'value="epoch"' not in plain
    assert 'data-param="smooth" data-value="0"' in plain


def test_the_page_knows_where_finer_numbers_are_and_a_report_has_none() -> None:
    assert curves_spec(subject())["layout"]["meta"]["fine"].startswith("/fine?run=")
    assert "fine" not in curves_spec(in_report())["layout"]["meta"]


def test_a_run_without_a_step_says_so(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db"):
        pass
    empty = Subject(Reading(tmp_path / "a.db"), ReportLinks({}), "a")
    assert "No step has been recorded yet" in str(curves_spec(empty))
