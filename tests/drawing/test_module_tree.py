"""The tree of a model as a figure."""

from __future__ import annotations

import pytest

from nethook.drawing.data import Row
from nethook.drawing.module_tree import tree

ROWS = (
    Row("", "Net", 0, parameters=100),
    Row("block", "Sequential", 1, parameters=75),
    Row("block.conv", "Conv2d", 2, shape="(8, 4)", parameters=75),
    Row("fc", "Linear", 1, shape="(8, 10)", parameters=25, note="never called"),
    Row("act", "ReLU", 1),
)


def test_a_line_for_each_module_indented_by_its_depth():
    names, kinds, shapes, bars = tree(ROWS)["data"]
    assert [text.strip() for text in names["text"]] == ["(model)", "block", "conv", "fc", "act"]
    assert [len(text) - len(text.lstrip()) for text in names["text"]] == [0, 3, 6, 3, 3]
    assert kinds["text"] == ["Net", "Sequential", "Conv2d", "Linear", "ReLU"]
    assert shapes["text"][2] == "(8, 4)"
    assert names["y"] == bars["y"] == [0, 1, 2, 3, 4]


def test_the_area_of_a_bar_is_a_share_of_all_parameters():
    bars = tree(ROWS)["data"][-1]
    # Parameters are counted once, where they are, and not again by every parent.
    assert bars["x"] == pytest.approx([0.14 * share**0.5 for share in (1, 0.75, 0.75, 0.25, 0)])
    assert bars["text"] == ["100", "75", "75", "25", ""]


def test_hovering_tells_everything():
    hover = tree(ROWS)["data"][0]["hovertext"]
    wanted = "<b>fc</b><br>Linear<br>returns (8, 10)<br>25 parameters, 25.0%<br>never called"
    assert hover[3] == wanted
    assert hover[4] == "<b>act</b><br>ReLU"


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999"), (1000, "1 k"), (12_345, "12.3 k"), (10**6, "1 M"), (7 * 10**9, "7 B")],
)
def test_large_numbers_are_short(count, text):
    assert tree([Row("a", "A", 0, parameters=count)])["data"][-1]["text"] == [text]


def test_names_of_others_are_text():
    spec = tree([Row("<b>x", "<i>", 0, shape="<u>", note="<s>")], title="<h1>")
    names, kinds, shapes, _ = spec["data"]
    for text in (names["text"][0], kinds["text"][0], shapes["text"][0]):
        assert "<" not in text
    assert "<h1>" not in spec["layout"]["title"]["text"]
    assert "<s>" not in names["hovertext"][0]


def test_an_empty_model_has_a_figure():
    spec = tree([], title="")
    assert all(not trace["y"] for trace in spec["data"])
    assert spec["layout"]["height"] == 52
