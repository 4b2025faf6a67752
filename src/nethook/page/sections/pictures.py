"""Pictures of what layers returned for a few samples: feature maps, attention, or plain rows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from nethook.drawing.data import Floats, Picture, Spec
from nethook.drawing.pictures import mosaic
from nethook.figures.reading import Reading
from nethook.figures.tensor_specs import attention_spec, snapshots_spec
from nethook.page.section import Drawing, Section, Subject
from nethook.text.escape import shorten

_CHANNELS: Final = 12
_HEADS: Final = 8
_STEPS: Final = 6  # that are shown of those that were kept
_SUM: Final = 1e-3  # how far from 1 a row of probabilities may sum


def pictures(subject: Subject, name: str, place: int | None = None) -> Section:
    """The section of a layer's snapshots; nothing where none were kept.

    Arguments:
        subject: the run.
        name: the layer.
        place: its number where several layers stand on one page, which then has their names.
    """
    tag = repr((subject.tag, name, "pictures"))
    end = "" if place is None else f"-{place}"
    figure = f"snapshots{end}"
    figures = {figure: Drawing(tag, lambda: pictures_spec(subject.reading, name))}
    above = None if place is None else name
    return Section(f"pictures{end}", tag, lambda: _data(subject, name, figure, above), figures)


def all_pictures(subject: Subject) -> list[Section]:
    """The sections of all layers that have snapshots."""
    order = {address: place for place, address in enumerate(subject.reading.layers())}
    names = sorted(subject.reading.snapshots, key=lambda name: order.get(name, len(order)))
    return [pictures(subject, name, place) for place, name in enumerate(names)]


def _data(subject: Subject, name: str, figure: str, above: str | None) -> dict[str, Any]:
    kept = subject.reading.snapshots.get(name)
    data = {"kind": "", "steps": 0, "shape": "", "figure": figure, "above": above}
    if not kept:
        return data
    shape = " × ".join(str(size) for size in kept[-1].values.shape)
    return {**data, "kind": kind_of(kept[-1].values), "steps": len(kept), "shape": shape}


def kind_of(values: Floats) -> str:
    """What an output is a picture of: `attention`, `feature maps` or `values`."""
    if values.ndim in (3, 4) and values.shape[-1] == values.shape[-2] > 1:
        rows = values.sum(axis=-1)
        if values.min() >= 0 and bool((np.abs(rows - 1) < _SUM).all()):
            return "attention"
    return "feature maps" if values.ndim == 4 else "values"


def pictures_spec(reading: Reading, name: str) -> Spec | None:
    """The snapshots of a layer as pictures, the oldest first; None where there are none."""
    kept = reading.snapshots.get(name)
    if not kept:
        return None
    chosen = {int(index) for index in np.linspace(0, len(kept) - 1, min(_STEPS, len(kept)))}
    arrays = {shot.step: shot.values for at, shot in enumerate(kept) if at in chosen}
    last = kept[-1].values
    kind = kind_of(last)
    short = shorten(name or "(model)", 40)
    if kind == "attention":
        return attention_spec(last, short, tokens=None, sample=0, heads=_HEADS)
    if kind == "feature maps":
        spec = snapshots_spec(arrays, short, sample=0, channels=_CHANNELS)
        spec["layout"]["height"] = min(spec["layout"]["height"], 120 + 130 * len(arrays))
        return spec
    rows = [Picture(f"step {step:,}", _flat(values)) for step, values in arrays.items()]
    signed = any(float(np.nanmin(values)) < 0 for values in arrays.values())
    title = f"{short} over training: a row a sample"
    spec = mosaic(title, rows, signed=signed, columns=1, axes=("sample", "unit"))
    spec["layout"]["height"] = 110 + 70 * len(rows)
    return spec


def _flat(values: Floats) -> Floats:
    """A row a sample."""
    return values.reshape(len(values), -1) if values.ndim > 1 else values.reshape(1, -1)
