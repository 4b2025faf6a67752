"""Pixels: colours against the scale's own ends, PNG against Pillow."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from nethook.drawing.stills.pixels import coloured, data_uri, png

SCALE = [[0.0, "#000000"], [0.5, "#804020"], [1.0, "#ffffff"]]


@pytest.mark.parametrize("channels", [3, 4])
def test_a_png_is_read_by_others(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels), dtype=np.uint8)
    read = np.asarray(Image.open(io.BytesIO(png(pixels))))
    assert np.array_equal(read, pixels)
    kind, _, text = data_uri(pixels).partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(text) == png(pixels)


def test_colours_of_a_scale() -> None:
    values = np.array([[0.0, 5.0, 10.0], [-3.0, 99.0, np.nan]])
    shown = coloured(values, SCALE, 0, 10)
    assert shown[0].tolist() == [[0, 0, 0, 255], [128, 64, 32, 255], [255, 255, 255, 255]]
    assert shown[1, :2].tolist() == [[0, 0, 0, 255], [255, 255, 255, 255]]  # beyond the ends
    assert shown[1, 2, 3] == 0  # what is missing is transparent


def test_colours_that_are_seen_through() -> None:
    scale = [[0.0, "rgba(10,20,30,0)"], [1.0, "rgba(20,40,60,1)"]]
    shown = coloured(np.array([[0.0, 0.5, 1.0, np.nan]]), scale, 0, 1)[0]
    assert shown[:3].tolist() == [[10, 20, 30, 0], [15, 30, 45, 128], [20, 40, 60, 255]]
    assert shown[3, 3] == 0


def test_a_scale_of_one_value() -> None:
    assert coloured(np.ones((1, 1)), SCALE, 1.0, 1.0)[0, 0].tolist() == [0, 0, 0, 255]
