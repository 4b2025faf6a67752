"""Overlays of whatever has places."""

import pytest
import torch
from torch import nn

from nethook import interp
from nethook.drawing.stills.axes import array_of
from nethook.errors import OptionError

IMAGES = torch.rand(2, 3, 8, 8)
MODEL = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.Flatten(), nn.Linear(64, 2))


def heatmaps(figure):
    return [trace for trace in figure.to_plotly_json()["data"] if trace["type"] == "heatmap"]


def numbers(trace):
    return torch.tensor(array_of(trace["z"])).float()


def test_maps_attributions_and_tensors():
    cam = interp.grad_cam(MODEL, IMAGES, target=0, at="0")
    for maps in (cam, cam.maps):
        found = heatmaps(interp.overlay(IMAGES, maps))
        assert len(found) == 4  # over the picture and beside it, of two pictures
        assert torch.allclose(numbers(found[1]), cam.maps[0])
        assert found[0]["opacity"] == 0.8
        assert "opacity" not in found[1]
    one = interp.saliency(MODEL, IMAGES, target=0)
    (_under, beside) = heatmaps(interp.overlay(IMAGES, one, row=1))
    assert torch.allclose(numbers(beside), one.shown()[1])


def test_what_has_no_places_is_refused():
    table = interp.saliency(nn.Linear(3, 1), torch.randn(2, 3))
    with pytest.raises(
        OptionError, match="`maps` must be an attribution of pixels; got one of fea"
    ):
        interp.overlay(IMAGES, table)
    with pytest.raises(
        OptionError, match="`maps` must be a Cam, an Attribution or a tensor; got l"
    ):
        interp.overlay(IMAGES, [1])
    with pytest.raises(OptionError, match=r"`images` must be \(rows, channels, height, width\)"):
        interp.overlay(IMAGES, torch.rand(3, 8, 8))
