"""Maps over pictures: cells as large as they are, one scale, a slider; and the still picture."""

import re

import numpy as np

from nethook.drawing.attributed.overlay import overlay_spec
from nethook.drawing.rendering.render import figure
from nethook.drawing.stills.still import still

PICTURE = np.random.default_rng(0).random((3, 8, 16))
MAP = np.array([[1.0, -2.0], [0.5, 0.0]])


def test_a_map_covers_its_picture():
    spec = overlay_spec("t", [PICTURE, PICTURE[:1]], [MAP, 3 * MAP], ["<a>", "b"])
    image, over, beside = spec["data"][:3]
    assert image["source"].startswith("data:image/png;base64,")
    assert np.allclose(over["x"], [3.5, 11.5])
    assert np.allclose(over["y"], [1.5, 5.5])
    assert np.array_equal(beside["z"], MAP)  # the raw numbers
    axis = spec["layout"]["coloraxis"]
    assert (axis["cmin"], axis["cmax"]) == (over["zmin"], over["zmax"]) == (-6.0, 6.0)
    assert over["colorscale"][3] == [0.5, "rgba(184,188,196,0)"]  # the picture alone
    assert spec["layout"]["annotations"][0]["text"] == "&lt;a&gt;"
    assert len({trace["xaxis"] for trace in spec["data"]}) == 4


def test_the_slider_sets_the_share_of_what_lies_over():
    spec = overlay_spec("t", [PICTURE, PICTURE], [MAP, MAP], ["a", "b"])
    (slider,) = spec["layout"]["sliders"]
    step = slider["steps"][slider["active"]]
    change, which = step["args"]
    assert which == [1, 4]
    assert [spec["data"][n]["type"] for n in which] == ["heatmap"] * 2
    assert {spec["data"][n]["opacity"] for n in which} == {change["opacity"]} == {0.8}
    assert [step["args"][0]["opacity"] for step in slider["steps"]] == [n / 10 for n in range(11)]


def test_plotly_takes_it_and_a_still_shows_it():
    made = figure(overlay_spec("t", [PICTURE], [MAP], ["a"]), "dark")
    picture = still(made.to_plotly_json())
    placed = re.findall(r"<image [^>]*>", picture)
    assert len(placed) == 4  # the picture, the map over it, the map alone, the colours
    assert 'opacity="0.8"' in placed[1]
    assert "opacity" not in placed[2]
    x, y, width, height = re.search(
        r'x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', placed[0]
    ).groups()
    assert f'x="{x}" y="{y}" width="{width}" height="{height}"' in placed[1]


def test_flat_and_empty_pictures():
    spec = overlay_spec("t", [np.zeros((1, 4, 4))], [np.zeros((4, 4))], ["a"])
    assert spec["layout"]["coloraxis"]["cmax"] == 1.0
