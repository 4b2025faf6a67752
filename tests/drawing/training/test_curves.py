"""Numbers over steps."""

from __future__ import annotations

import html
from itertools import pairwise

import numpy as np

from nethook.drawing.data import Line, Mark, Panel
from nethook.drawing.rendering.render import figure
from nethook.drawing.training.curves import curves
from tests.figures.shared import HOSTILE

STEPS = np.arange(200)
LOSS = Line("training", STEPS, np.exp(-STEPS / 50.0))
MARK = Mark(60.0, "error", "dead-units", "most units are silent", "finding-3", 120.0)


def test_panels_share_the_axis_of_steps_and_do_not_overlap():
    panels = [Panel("loss", [LOSS], tall=2), Panel("norm", [LOSS], scale="log"), Panel("x", [LOSS])]
    made = figure(curves(panels, [MARK]))
    assert {trace.xaxis for trace in made.data} == {"x"}
    domains = [made.layout[f"yaxis{at}"].domain for at in ("", 2, 3)]
    for above, below in pairwise(domains):
        assert above[0] > below[1]
    assert made.layout.yaxis20.domain[0] >= domains[0][1]
    assert domains[2][0] >= 0
    heights = [top - bottom for bottom, top in domains]
    assert np.isclose(heights[0], 2 * heights[1])


def test_a_long_line_is_thinned_and_its_spike_is_kept():
    value = np.ones(50_000)
    value[31_234] = 99.0
    made = figure(curves([Panel("x", [Line("a", np.arange(50_000), value)])]))
    assert all(len(trace.x) <= 1000 for trace in made.data)
    assert max(max(trace.y) for trace in made.data) == 99.0


def test_a_finding_is_marked_and_leads_to_its_place():
    made = figure(curves([Panel("loss", [LOSS])], [MARK]))
    (marks,) = [trace for trace in made.data if trace.yaxis == "y20"]
    assert list(marks.x) == [60.0]
    assert marks.customdata[0][0] == "finding-3"
    assert "most units are silent" in marks.text[0]
    assert [shape.x0 for shape in made.layout.shapes] == [60.0]


def test_a_threshold_is_drawn_on_the_axis_of_its_panel():
    panels = [Panel("loss", [LOSS]), Panel("ratio", [LOSS], scale="log", threshold=0.01)]
    made = figure(curves(panels))
    (shape,) = made.layout.shapes
    assert (shape.yref, shape.y0, shape.y1) == ("y2", 0.01, 0.01)
    (text,) = [a for a in made.layout.annotations if a.text.startswith("threshold")]
    assert (text.yref, text.y) == ("y2", -2.0)  # annotations on a log axis are placed by exponents
    low, high = made.layout.yaxis2.range
    assert low <= -2.0 <= high


def test_an_empty_or_constant_or_missing_line_is_drawn_too():
    nothing = Line("a", np.zeros(0), np.zeros(0))
    gaps = Line("b", STEPS, np.full(200, np.nan))
    flat = Line("c", STEPS, np.full(200, 0.5))
    for line in (nothing, gaps, flat):
        for scale in ("linear", "log", "share"):
            figure(curves([Panel("x", [line], scale=scale)]))
    assert figure(curves([Panel("x", [flat])])).layout.yaxis.range == (0.0, 1.0)
    assert figure(curves([])).data == ()


def test_names_are_shown_as_they_are():
    made = figure(curves([Panel(HOSTILE, [LOSS, Line(HOSTILE, STEPS, LOSS.value)])], title=HOSTILE))
    texts = [a.text for a in made.layout.annotations] + [trace.name for trace in made.data]
    texts.append(made.layout.title.text)
    assert not any("<script" in text or "%{" in text for text in texts)


def test_the_cursor_reads_in_words() -> None:
    step = np.arange(5)
    loss = Panel(
        "loss", [Line("training", step, step + 1.0), Line("evaluation, a.py:3", step, step + 1.0)]
    )
    rate = Panel("learning rate", [Line("learning rate", step, np.full(5, 5.6e-4))])
    norm = Panel(
        "gradient norm", [Line("as used", step, step + 1.0), Line("clipped to", step, step + 1.0)]
    )
    share = Panel("dead units", [Line("fc", step, step / 10)], scale="share")
    spec = curves([loss, rate, norm, share])
    assert spec["layout"]["xaxis"]["unifiedhovertitle"]["text"] == "step %{x:,.0f}"
    read = [trace["hovertemplate"].removesuffix("<extra></extra>") for trace in spec["data"]]
    assert read == [
        "training loss %{y:.4~g}", "evaluation loss, a.py:3 %{y:.4~g}", "learning rate %{y:.3~e}",
        "gradient norm, as used %{y:.4~g}", "gradient norm, clipped to %{y:.4~g}",
        "dead units %{y:.2~%}",
    ]  # fmt: skip


def test_a_narrow_page_knows_when_captions_have_no_room_and_which_lines_to_name():
    names = ["before clipping", "as used"]
    both = [Line(name, STEPS, np.ones(200), np.ones(200), 2 * np.ones(200)) for name in names]
    short = figure(curves([Panel("loss", [LOSS])], [MARK]))
    long = figure(curves([Panel("loss", [LOSS]), Panel("gradient norm", both)], [MARK]))
    assert short.layout.meta["captions"] < 150 < 250 < long.layout.meta["captions"] < 500
    assert not any(trace.showlegend for trace in short.data)
    assert [trace.name for trace in long.data if trace.showlegend] == names


def test_a_threshold_may_have_a_name():
    panel = Panel("cost", [LOSS], threshold=0.03, limit="budget 3 %")
    made = figure(curves([panel]))
    assert html.unescape(made.layout.annotations[-1].text) == "budget 3 %"
