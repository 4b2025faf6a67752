"""Still pictures of every figure: well-formed, complete, and without a script."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from nethook.drawing.stills.still import still
from nethook.figures import depth, heatmap, overview, tree
from tests.figures.shared import training

_PLAIN = {"showgrid": False}
SVG = "{http://www.w3.org/2000/svg}"


def read(figure) -> ET.Element:
    picture = still(figure if isinstance(figure, dict) else figure.to_plotly_json())
    assert "<script" not in picture
    assert "nan" not in re.sub(r"<text.*?</text>|base64,[^\"]*", "", picture)
    root = ET.fromstring(picture)
    assert root.get("aria-label")
    return root


def texts(root: ET.Element) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("make", [overview, heatmap, depth, tree], ids=lambda make: make.__name__)
def test_figures_of_a_run_have_a_picture(make, theme: str) -> None:
    figure = make(training(), theme=theme)
    root = read(figure)
    background = next(root.iter(f"{SVG}rect")).get("fill")
    assert background == {"light": "#ffffff", "dark": "#171b21"}[theme]
    assert len(texts(root)) > 5
    assert len([*root.iter(f"{SVG}path"), *root.iter(f"{SVG}image"), *root.iter(f"{SVG}rect")]) > 3


def test_a_line_is_where_its_numbers_are() -> None:
    layout = {
        "height": 200, "margin": {"l": 50, "r": 50, "t": 50, "b": 50},
        "xaxis": {"range": [0, 4], "visible": False}, "yaxis": {"range": [0, 10], "visible": False},
    }  # fmt: skip
    trace = {"type": "scatter", "mode": "lines", "x": [0, 2, 3, 4], "y": [0, 10, np.nan, 5]}
    root = read({"data": [trace], "layout": layout})
    (path,) = root.iter(f"{SVG}path")
    assert path.get("d") == "M50.0,150.0 L450.0,50.0 M850.0,100.0"


def test_names_of_lines_have_their_colours_and_stay_texts() -> None:
    name = '<span style="color:#D55E00">━ a &lt;tspan&gt; &amp; b</span>'
    note = {"text": f"<b>loss</b>   {name}", "x": 0, "y": 1, "xref": "paper", "yref": "paper"}
    title = {"title": {"text": "&#37; of <b>all</b>"}}
    root = read({"data": [], "layout": {"annotations": [note], "yaxis": title, "xaxis": title}})
    (caption,) = (each for each in root.iter(f"{SVG}text") if "loss" in "".join(each.itertext()))
    bold, space, coloured = caption.iter(f"{SVG}tspan")
    assert (bold.text, bold.get("font-weight")) == ("loss", "600")
    assert len(space.text or "") == 3
    assert (coloured.text, coloured.get("fill")) == ("━ a <tspan> & b", "#D55E00")
    assert coloured.get("font-weight") is None
    assert texts(root).count("% of all") == 2


def test_cells_keep_their_order_and_texts_are_texts() -> None:
    layout = {"title": {"text": "<b>a &lt;b&gt;</b><br><sup>why</sup>"}, "height": 300}
    scale = [[0, "#000000"], [1, "#ffffff"]]
    trace = {"type": "heatmap", "z": [[0.0, 1.0], [2.0, 3.0]], "colorscale": scale, "y": ["p", "q"]}
    root = read({"data": [trace], "layout": layout})
    assert {"a <b>", "why", "p", "q"} <= set(texts(root))
    (image,) = root.iter(f"{SVG}image")
    assert image.get("href", "").startswith("data:image/png;base64,")


def test_bands_bars_and_marks() -> None:
    low = {"type": "scatter", "mode": "lines", "x": [0, 1], "y": [0, 0], "line": {"width": 0}}
    high = {**low, "y": [1, 2], "fill": "tonexty", "fillcolor": "rgba(1,2,3,0.2)"}
    bars = {"type": "bar", "x": [0, 1], "y": [1, 2]}
    marks = {"type": "scatter", "mode": "markers+text", "x": [0], "y": [1], "text": ["here"]}
    shapes = [{"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1}]
    notes = [{"text": "note", "xref": "paper", "yref": "paper", "x": 0, "y": 1}]
    figure = {"data": [low, high, bars, marks], "layout": {"shapes": shapes, "annotations": notes}}
    root = read(figure)
    assert len([*root.iter(f"{SVG}polygon")]) == 1
    assert len([*root.iter(f"{SVG}circle")]) == 1
    assert len([*root.iter(f"{SVG}rect")]) == 3
    assert {"here", "note"} <= set(texts(root))


def test_nothing_is_a_picture_too() -> None:
    assert read({"data": [], "layout": {}}).tag == f"{SVG}svg"


def test_a_note_that_is_shifted_stands_beside_its_place() -> None:
    note = {"text": "name", "xref": "paper", "yref": "paper", "x": 0.2, "y": 1.0}
    layout = {"annotations": [note, {**note, "xshift": 6}]}
    two = [
        each
        for each in read({"data": [], "layout": layout}).iter(f"{SVG}text")
        if each.text == "name"
    ]
    assert float(two[1].get("x", "0")) - float(two[0].get("x", "0")) == 6


def test_a_note_at_the_edge_is_not_cut_off() -> None:
    def note(x: float) -> dict:
        paper = {"xref": "paper", "yref": "paper", "x": x, "y": 1, "xanchor": "left"}
        return {**paper, "text": "resumed from a checkpoint"}

    layout = {"annotations": [note(0.2), note(1.0)], "margin": {"r": 10}}
    root = read({"data": [], "layout": layout})
    inside, edge = [each for each in root.iter(f"{SVG}text") if "resumed" in (each.text or "")]
    assert inside.get("text-anchor") == "start"
    assert (edge.get("text-anchor"), float(edge.get("x", 0))) == ("end", 898.0)


def test_intervals_of_flat_bars() -> None:
    bars = {
        "type": "bar", "orientation": "h", "x": [1.0, 2.0], "y": ["a", "b"],
        "error_x": {"array": [0.5, 0.0], "arrayminus": [0.25, 0.0]},
    }  # fmt: skip
    figure = {"data": [bars], "layout": {"xaxis": _PLAIN | {"range": [0, 2]}, "yaxis": _PLAIN}}
    picture = still(figure)
    (line,) = re.findall(r'<path d="M([\d.]+),[\d.]+ L([\d.]+),', picture)
    rects = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', picture)
    one = float(rects[0][1])  # the first bar's length, which stands for 1
    assert float(line[1]) - float(line[0]) == pytest.approx(0.75 * one, abs=0.2)
