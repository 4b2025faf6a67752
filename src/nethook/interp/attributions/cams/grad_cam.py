"""`grad_cam`: where in a picture a layer finds what speaks for a target."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from nethook.addresses.patterns import Pattern
from nethook.errors import OptionError
from nethook.extracting.progress import Bar
from nethook.hooks.autograd.lazy_copy import cheap_copy
from nethook.interp.attributions.batches import rows_per_run, runs_of
from nethook.interp.attributions.cams.formulae import (
    grad_cam_map,
    hires_map,
    layer_map,
    masks_of,
    plus_plus_map,
)
from nethook.interp.attributions.cams.layouts import Layout, find_layout
from nethook.interp.attributions.gradients import gradient
from nethook.interp.attributions.subject import Subject, subject
from nethook.interp.attributions.targets import Given
from nethook.interp.results.cam import Cam

Method = Literal["grad_cam", "++", "hires", "layer", "score"]

_FORMULAE = {
    "grad_cam": grad_cam_map, "++": plus_plus_map, "hires": hires_map, "layer": layer_map,
}  # fmt: skip


def grad_cam(
    model: nn.Module,
    images: object,
    target: Given = None,
    at: Pattern | None = None,
    *,
    method: Method = "grad_cam",
    grid: tuple[int, int] | None = None,
    progress: bool | None = None,
) -> Cam:
    """A coarse map of where a layer sees what speaks for a target, and what against it.

        cam = interp.grad_cam(model, images, target=label, at="layer4")
        cam.maps, cam.figure()

    Maps are raw and signed: nothing is cut off at zero or rescaled, so pictures can be compared.
    `cam.positive` is what the paper shows.

    Arguments:
        model: any `nn.Module` with pictures as input: CNNs, ViTs, Swins.
        images: inputs with pictures (rows, channels, height, width) among them.
        target: as in `interp.saliency`: a class, a class per row, "top", or a function of the
            output, such as a class over a region (`lambda out: out[:, 3].mean((1, 2))`).
        at: the layer whose output is read, mostly the last with places: `layer4` of a ResNet, the
            norm before the attention of the last block of a ViT. How it lays out channels and
            places is found from its shape and the pictures'; class and register tokens are left
            out.
        method: "grad_cam"; "++" (several objects of a class); "hires" (each value by its own
            gradient: true to what the model computes); "layer" (for early layers); "score" (no
            gradient: a forward per channel).
        grid: height and width of the patches, where they cannot be found from the shape.
        progress: whether to show a progress bar; None: on a terminal and in a notebook.

    Returns:
        A `Cam`. Cost: a forward and a backward; with "score", a forward per channel.
    """
    if method not in (*_FORMULAE, "score"):
        known = ", ".join(repr(name) for name in (*_FORMULAE, "score"))
        raise OptionError(f"`method` must be one of {known}; got {method!r}.")
    if at is None:
        raise OptionError(
            "`at` must name the layer whose output is read; got None. It is mostly the last one "
            'with places, such as at="layer4".'
        )
    with subject(model, images, target, at, graph=method != "score") as study:
        pictures = _pictures(study)
        size = int(pictures.shape[2]), int(pictures.shape[3])
        layout = find_layout(tuple(study.value.shape), size, study.address, grid)
        values = layout.channels_first(study.value)
        if method == "score":
            maps = _scored(study, values, size, progress)
        else:
            grads = layout.channels_first(gradient(study, progress, "Grad-CAM"))
            maps = _FORMULAE[method](values, grads)
            if not bool(maps.any()):
                _check_reached(grads, study, layout)
        return Cam(
            maps=maps.detach(), score=study.score, method=method, at=study.address,
            layout=layout.name, skipped=layout.skipped, images=cheap_copy(pictures, detach=True),
        )  # fmt: skip


def _pictures(study: Subject) -> torch.Tensor:
    shown = study.picture
    if shown is None:
        raise OptionError(
            "`images` must hold pictures, a tensor (rows, channels, height, width); got inputs "
            "without one."
        )
    return shown


def _check_reached(grads: torch.Tensor, study: Subject, layout: Layout) -> None:
    if bool(grads.any()):
        return
    other = " The model reads its other tokens alone there." if layout.skipped else ""
    raise OptionError(
        f"`at` must name a layer whose places the target depends on; got {study.address!r}, where "
        f"its gradient is zero everywhere.{other} Name an earlier one, such as the norm at the "
        "beginning of the last block."
    )


def _scored(
    study: Subject, values: torch.Tensor, size: tuple[int, int], progress: bool | None
) -> torch.Tensor:
    """Channels weighted by the softmax of the scores of pictures under their masks."""
    rows, channels = values.shape[:2]
    pictures = study.at_picture()
    scores = torch.empty(rows, channels, dtype=study.score.dtype, device=values.device)
    everything = torch.arange(rows)
    per_run = max(1, rows_per_run(pictures, rows * channels) // rows)
    with Bar(runs_of(channels, per_run), 0, shown=progress, label="Score-CAM", unit="rows") as bar:
        for first in range(0, channels, per_run):
            several = values[:, first : first + per_run]
            masks = masks_of(several, size)  # (rows, several, height, width)
            count = several.shape[1]
            # All rows under the first mask, then all under the second: whole copies of the batch.
            masked = pictures.value[None] * masks.transpose(0, 1)[:, :, None]
            found = pictures.scores(masked.flatten(0, 1), everything.repeat(count))
            scores[:, first : first + count] = found.unflatten(0, (count, rows)).T
            bar.advance(count * rows)
    weights = torch.softmax(scores, 1)
    return (weights[:, :, None, None] * values).sum(1)
