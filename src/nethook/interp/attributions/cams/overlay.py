"""`overlay`: maps or attributions over pictures."""

from __future__ import annotations

from typing import Any

import torch

from nethook.drawing.rendering.render import figure
from nethook.errors import OptionError
from nethook.interp.results.attribution import Attribution
from nethook.interp.results.cam import Cam
from nethook.interp.results.looks import overlaid
from nethook.interp.results.places import PIXELS


def overlay(
    images: torch.Tensor, maps: Cam | Attribution | torch.Tensor, *, row: int | None = None,
    theme: str = "light",
) -> Any:  # fmt: skip
    """Pictures under a map, with a slider for the map's share, and the raw map beside them.

        interp.overlay(images, cam)

    Arguments:
        images: (rows, channels, height, width), in any range: each is shown from its least to its
            greatest number.
        maps: what `interp.grad_cam` or an attribution of pixels returned, or a tensor (rows,
            height, width) of any size. Its numbers are shown as they are, on one scale.
        row: one row of the batch; otherwise the first ones.
        theme: "light" or "dark".

    Returns:
        A Plotly figure.
    """
    if isinstance(maps, Cam):
        return maps.figure(images, row=row, theme=theme)
    if isinstance(maps, Attribution):
        if maps.kind != PIXELS:
            raise OptionError(f"`maps` must be an attribution of pixels; got one of {maps.kind}.")
        return maps.figure(images=images, row=row, theme=theme)
    if not isinstance(maps, torch.Tensor):
        raise OptionError(
            f"`maps` must be a Cam, an Attribution or a tensor; got {type(maps).__name__}."
        )
    return figure(overlaid(images, maps, "overlay", row), theme)
