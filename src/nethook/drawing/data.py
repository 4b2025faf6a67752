"""What figures are made of: plain data. Whoever has a run, a tape or numbers of their own makes it.

A figure is first a *spec*: a dictionary with the `data` and `layout` of a Plotly figure, in which
arrays are numpy's and the cells of a heatmap are `Cells`. `render` makes a figure or JSON of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Integers = npt.NDArray[np.integer[Any]]
Spec = dict[str, Any]


@dataclass(frozen=True)
class Quantity:
    """What is shown: its title, its unit, one sentence that explains it, and how to draw it.

    `scale` is `log` (sizes over many orders), `share` (0 to 1), `signed` (zero is the middle) or
    `linear`.
    """

    name: str
    title: str
    explain: str
    unit: str = ""
    scale: str = "linear"


@dataclass(frozen=True, eq=False)
class Line:
    """A number over steps; least and greatest where each point stands for several.

    `held` says that each number holds until the next.
    """

    name: str
    step: Integers | Floats
    value: Floats
    least: Floats | None = None
    greatest: Floats | None = None
    dash: str = ""
    markers: bool = False
    colour: str = ""
    held: bool = False


@dataclass(frozen=True)
class Panel:
    """Lines that share an axis; `threshold` is drawn across, and `limit` is what it is called."""

    title: str
    lines: Sequence[Line]
    explain: str = ""
    unit: str = ""
    scale: str = "linear"
    threshold: float | None = None
    tall: float = 1.0
    limit: str = ""


@dataclass(frozen=True)
class Mark:
    """Something to point out at a step: a finding, or an event."""

    step: float
    severity: str
    label: str
    text: str = ""
    anchor: str = ""
    last_step: float | None = None


@dataclass(frozen=True, eq=False)
class Grid:
    """One quantity of many rows (layers) over steps: (rows, columns), NaN where nothing is.

    `least`, `greatest` and `last` are the same array where each column is one window.
    """

    quantity: Quantity
    rows: Sequence[str]
    first_step: Integers
    last_step: Integers
    least: Floats
    greatest: Floats
    last: Floats
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A line of the model's tree."""

    address: str
    kind: str
    depth: int
    shape: str = ""
    parameters: int = 0
    note: str = ""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a heatmap: values (planes, rows, columns); the first plane is the colour.

    `log`: colours are of decimal logarithms. A zero has the lowest colour there, and is no gap.
    """

    planes: Floats
    log: bool = False

    def colours(self) -> Floats:
        """What the colour scale is of: (rows, columns)."""
        return self.scaled(self.planes[0])

    def scaled(self, values: Floats) -> Floats:
        """Values as the colour scale has them."""
        if not self.log:
            return values
        low, high = self.ends()
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled: Floats = np.log10(values)
        scaled[np.isneginf(scaled)] = low
        scaled[np.isposinf(scaled)] = high
        return scaled

    def ends(self) -> tuple[float, float]:
        """The least and the greatest colour over all planes: what 8-bit codes are relative to."""
        values = self.planes
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.log10(values)
        finite = values[np.isfinite(values)]
        return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


@dataclass(frozen=True)
class Picture:
    """One picture of a grid of them: (height, width), and what it is called."""

    title: str
    pixels: Floats = field(repr=False)
