"""Pictures side by side: every pixel is where it belongs."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.drawing.data import Picture, Row
from nethook.drawing.module_tree import tree
from nethook.drawing.pictures import colour_mosaic, maps, mosaic
from nethook.drawing.rendering.render import figure
from tests.figures.shared import HOSTILE


def pictures(count, height=4, width=5):
    random = np.random.default_rng(0)
    return [Picture(f"p{at}", random.random((height, width))) for at in range(count)]


@pytest.mark.parametrize("count", [1, 3, 16])
def test_every_pixel_is_there_once_and_knows_its_place(count):
    shown = pictures(count)
    made = figure(mosaic("x", shown))
    data = np.array(made.data[0].customdata).reshape(-1, 4)
    data = data[~np.isnan(data[:, 0])]
    assert len(data) == count * 20
    for which, row, column, value in data:
        assert value == shown[int(which)].pixels[int(row), int(column)]
    assert [note.text for note in made.layout.annotations] == [f"p{at}" for at in range(count)]


@pytest.mark.parametrize(("count", "columns"), [(78, 6), (16, 6), (4, 2)])
def test_titles_have_room_between_the_rows(count, columns):
    made = figure(mosaic("x", pictures(count, 8, 8), columns=columns))
    z = np.array(made.data[0].z, dtype=float)
    gap = int(np.isnan(z[:, 0]).sum()) / (-(-count // columns) - 1)
    scale = min((made.layout.height - 80) / len(z), 900 / z.shape[1])  # pixels for each of the data
    assert gap * scale >= 16


def test_a_single_small_picture_is_not_blown_up():
    assert figure(mosaic("x", pictures(1, 8, 8))).layout.height < 500


def test_each_on_its_own_scale():
    shown = [Picture("weak", np.array([[0.0, 1e-6]])), Picture("strong", np.array([[0.0, 9.0]]))]
    z = np.array(figure(mosaic("x", shown, each=True)).data[0].z)
    assert np.nanmax(z[0]) == np.nanmax(z[-1])  # the weak one is as bright as the strong one


def test_signed_pictures_have_zero_in_the_middle():
    made = figure(mosaic("x", [Picture("a", np.array([[-3.0, 1.0]]))], signed=True))
    assert made.layout.coloraxis.cmin == -made.layout.coloraxis.cmax


def test_three_channels_are_colours():
    red = np.zeros((3, 2, 2))
    red[0] = 1.0
    z = np.array(figure(colour_mosaic("x", [red, red])).data[0].z)
    np.testing.assert_array_equal(z[0, 0], [255, 0, 0, 1])
    assert z[..., 3].min() == 0  # the gap lets the background through


def test_maps_have_a_place_each_and_names():
    made = figure(maps("x", pictures(5, 3, 3), ["a", "b", HOSTILE], ["1", "2", "3"]))
    assert len({(trace.xaxis, trace.yaxis) for trace in made.data}) == 5
    np.testing.assert_array_equal(made.data[4].z, pictures(5, 3, 3)[4].pixels)
    assert "<script" not in str(made.layout.yaxis.ticktext)
    assert made.data[0].text[1][2] == "b → 3"


def test_a_menu_picks_one_of_several_maps_and_shows_all_again():
    made = figure(maps("x", pictures(5, 3, 3), ["a", "b", "c"], ["1", "2", "3"]))
    (menu,) = made.layout.updatemenus
    assert [button.label for button in menu.buttons][:3] == ["all", "p0", "p1"]
    before = made.to_dict()

    def press(number):
        traces, layout = menu.buttons[number].args
        visible = traces["visible"]
        for place, trace in enumerate(made.data):
            trace.visible = visible if isinstance(visible, bool) else visible[place]
        return layout

    layout = press(3)
    assert [trace.visible for trace in made.data] == [False, False, True, False, False]
    assert layout["xaxis3.domain"] == layout["yaxis3.domain"] == [0.0, 1.0]
    hidden = {key for key, value in layout.items() if key.endswith(".visible") and value is False}
    assert hidden == {f"{axis}axis{n}.visible" for axis in "xy" for n in ("", "2", "4", "5")} | {
        f"annotations[{n}].visible" for n in (0, 1, 3, 4)
    }
    back = press(0)
    assert all(trace.visible for trace in made.data)
    for key, value in back.items():
        if key.endswith(".domain"):
            assert list(value) == list(before["layout"][key.partition(".")[0]]["domain"])
    assert not figure(maps("x", pictures(1, 3, 3), ["a"] * 3, ["1"] * 3)).layout.updatemenus


def test_a_tree_has_a_line_a_module_with_its_shape_and_share():
    rows = [
        Row("", "Net", 0, "64 × 10", 300),
        Row("a", "Block", 1, "", 100),
        Row("a.conv", "Conv2d", 2, "64 × 20", 100),
        Row("fc", "Linear", 1, "64 × 10", 200, "frozen"),
    ]
    made = figure(tree(rows))
    names, kinds, shapes, bars = made.data
    assert [text.strip("\u00a0") for text in names.text] == ["(model)", "a", "conv", "fc"]
    assert names.text[2].count("\u00a0") > names.text[1].count("\u00a0") > 0
    assert list(kinds.text) == ["Net", "Block", "Conv2d", "Linear"]
    assert list(shapes.text)[3] == "64 × 10"
    assert list(bars.text) == ["300", "100", "100", "200"]
    assert "66.7%" in names.hovertext[3]
    assert "frozen" in names.hovertext[3]
