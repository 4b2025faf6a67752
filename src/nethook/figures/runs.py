"""The figures of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nethook.drawing.data import Grid, Mark, Quantity, Spec
from nethook.drawing.decimate import POINTS, cut_line
from nethook.drawing.module_tree import tree as draw_tree
from nethook.drawing.rendering.render import figure
from nethook.drawing.training.curves import TALL, curves
from nethook.drawing.training.depth import Profile
from nethook.drawing.training.depth import depth as draw_depth
from nethook.drawing.training.distribution import bands as draw_bands
from nethook.drawing.training.distribution import histogram_over_time, units_over_time
from nethook.drawing.training.heatmap import heatmap as draw_heatmap
from nethook.errors import NoSuchSiteError
from nethook.figures.evidence import depth_spec, finding_specs
from nethook.figures.panels import panels
from nethook.figures.reading import Reading
from nethook.figures.site_order import tree_rows
from nethook.figures.two_runs import curves_of, ratio_of_two
from nethook.runs.reading.comparing.divergence import Parting, find_parting
from nethook.runs.reading.run import Run
from nethook.text.escape import shorten
from nethook.text.findings import Finding, read_findings

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

AnyRun = Run | str | Path
SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""The percentiles of `bands`."""


def overview(run: AnyRun, *, theme: str = "light") -> Figure:
    """Loss, learning rate, gradient norm, update ratio and what was logged.

    Findings are marked, and so are the steps at which the run had stopped and went on.

    Arguments:
        run: a run, or its path.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure with one cursor through all panels. Lines have at most 1,000 points; the
        least and the greatest of what each stands for are drawn as a band.
    """
    reading = Reading(run)
    return figure(overview_spec(reading, reading.marks), theme)


def overview_spec(
    reading: Reading,
    marks: Sequence[Mark],
    *,
    points: int = POINTS,
    tall: int = TALL,
    between: tuple[float, float] | None = None,
) -> Spec:
    """The spec of `overview`; with `between` only the points there, and one beyond each end."""
    shown = panels(reading)
    if between is not None:
        shown = [
            replace(panel, lines=[cut_line(li, *between) for li in panel.lines]) for panel in shown
        ]
    return curves(shown, marks, points=points, tall=tall)


def heatmap(
    run: AnyRun,
    quantity: str = "gradients",
    *,
    phase: str = "train",
    all_time: bool = False,
    theme: str = "light",
) -> Figure:
    """Every layer (or parameter) over every step, in order of execution, as colours.

    Arguments:
        run: a run, or its path.
        quantity: one of `nethook.figures.QUANTITIES`.
        phase: `train`, `eval` or `aux`.
        all_time: colours span all values there ever were; else 96 % of them, so that one spike
            does not make all else look alike. Buttons switch between the two.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure of at most 600 columns. Where a column stands for several windows its colour
        is the greatest, and the least and the last are in the hover text.
    """
    reading = Reading(run)
    grid = reading.needed_grid(quantity, phase)
    return figure(draw_heatmap(grid, reading.marks, all_time=all_time), theme)


def depth(
    run: AnyRun,
    quantity: str = "output_gradients",
    *,
    step: int | Sequence[int] | None = None,
    against: AnyRun | None = None,
    theme: str = "light",
) -> Figure:
    """One number of every layer, from the first to the last, at a step.

    Arguments:
        run: a run, or its path.
        quantity: one of `nethook.figures.QUANTITIES`.
        step: which, or several of them; without it, the first and the last.
        against: another run, drawn beside it at the same (last) step.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure.
    """
    reading = Reading(run)
    reading.needed_grid(quantity)
    if step is None:
        steps = [reading.last_step] if against is not None else [0, reading.last_step]
    else:
        steps = [step] if isinstance(step, int) else list(step)
    spec = depth_spec(reading, quantity, steps)
    assert spec is not None  # needed_grid would have raised
    if against is not None:
        spec = beside_spec(reading, Reading(against), quantity, steps[-1]) or spec
    return figure(spec, theme)


def beside_spec(first: Reading, second: Reading, quantity: str, step: int) -> Spec | None:
    """The profiles of two runs at one step, over the rows of the first."""
    profiles = []
    rows = first.needed_grid(quantity).rows
    for reading in (first, second):
        grid = reading.needed_grid(quantity)
        spec = depth_spec(reading, quantity, [step])
        if spec is None:
            return None
        values = dict(zip(grid.rows, spec["data"][0]["x"], strict=True))
        name = f"{reading.run.path.stem}, {spec['data'][0]['name']}"
        profiles.append(Profile(name, np.array([values.get(row, np.nan) for row in rows])))
    return draw_depth(first.needed_grid(quantity).quantity, rows, profiles)


def histogram(
    run: AnyRun,
    address: str,
    quantity: str = "outputs",
    *,
    phase: str = "train",
    theme: str = "light",
) -> Figure:
    """How the values of one layer were spread, over time: a column a span, a row a bin.

    Arguments:
        run: a run, or its path.
        address: the layer (or parameter).
        quantity: a series of the run: `outputs`, `grads`, `params`, `param_grads`, `updates`.
        phase: `train`, `eval` or `aux`.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure. Bins are spaced by magnitude on both sides of zero; nothing is cut off.
    """
    return figure(histogram_spec(Reading(run), address, quantity, phase), theme)


def histogram_spec(
    reading: Reading, address: str, quantity: str, phase: str = "train", columns: int = 256
) -> Spec:
    """The spec of `histogram`."""
    histograms = reading.histograms(address, quantity, phase)
    title = f"{shorten(address or 'model', 40)}: {WORDS.get(quantity, quantity)} over time"
    return histogram_over_time(
        title,
        histograms.first_step,
        histograms.last_step,
        histograms.counts,
        histograms.values,
        columns=columns,
    )


WORDS = {
    "outputs": "outputs",
    "grads": "gradients at the outputs",
    "params": "parameters",
    "param_grads": "gradients",
    "updates": "updates",
}
"""What a series is called in a title."""


def bands(
    run: AnyRun,
    address: str,
    quantity: str = "outputs",
    *,
    phase: str = "train",
    theme: str = "light",
) -> Figure:
    """Percentiles of one layer over time: the median, and bands around it.

    Arguments are those of `histogram`. The percentiles are within 9 %.
    """
    return figure(bands_spec(Reading(run), address, quantity, phase), theme)


def bands_spec(reading: Reading, address: str, quantity: str, phase: str = "train") -> Spec:
    """The spec of `bands`."""
    histograms = reading.histograms(address, quantity, phase)
    title = f"{shorten(address or 'model', 40)}: percentiles of {WORDS.get(quantity, quantity)}"
    return draw_bands(
        title, histograms.first_step, histograms.last_step, histograms.quantiles(SHARES), SHARES
    )


def units(run: AnyRun, address: str, *, phase: str = "train", theme: str = "light") -> Figure:
    """Which units of a layer were ever active, span by span, and the share that was dead.

    Arguments:
        run: a run, or its path.
        address: the layer.
        phase: `train`, `eval` or `aux`.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure; of more than 128 units a row stands for several.
    """
    reading = Reading(run)
    if reading.has(address, "outputs") and not reading.catalogue[address, "outputs"].units:
        raise NoSuchSiteError(f"The run has no units of {address!r}: it kept no bits for them.")
    return figure(units_spec(reading, address, phase), theme)


def units_spec(reading: Reading, address: str, phase: str = "train", columns: int = 256) -> Spec:
    """The spec of `units`."""
    units = reading.units(address, phase)
    title = f"{shorten(address, 40)}: units that were ever active"
    spans = (units.first_step, units.last_step)
    return units_over_time(title, *spans, units.active, units.measured, columns=columns)


def tree(run: AnyRun, *, theme: str = "light") -> Figure:
    """The modules of the model: types, shapes of what they return, parameters.

    Arguments:
        run: a run, or its path.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure with a line a module, in the order of execution.
    """
    reading = Reading(run)
    return figure(draw_tree(tree_rows(reading.order)), theme)


def finding(
    run: AnyRun, found: int | Finding | Mapping[str, Any] = 0, *, theme: str = "light"
) -> Figure:
    """What shows a finding: the numbers behind it, with its threshold and its onset drawn.

    Arguments:
        run: a run, or its path.
        found: its number in the report (0 is the worst), or an entry of `run.findings`.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure.
    """
    reading = Reading(run)
    if isinstance(found, int):
        if not 0 <= found < len(reading.findings):
            raise NoSuchSiteError(
                f"`found` must be the number of a finding; got {found}. The run has "
                f"{len(reading.findings)} findings, and the first is 0."
            )
        found = reading.findings[found]
    elif isinstance(found, Mapping):
        found = read_findings([found])[0]
    specs = finding_specs(reading, found)
    if not specs:
        raise NoSuchSiteError(f"The run has no numbers that show {found.code!r}.")
    return figure(specs[0], theme)


def compare(
    first: AnyRun, second: AnyRun, quantity: str | None = None, *, theme: str = "light"
) -> Figure:
    """Two runs: their losses and gradient norms, or with a quantity layer against layer.

    Arguments:
        first, second: runs, or their paths.
        quantity: one of `nethook.figures.QUANTITIES`; without it, curves.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure, with the step marked at which they diverge first.
    """
    one, two = Reading(first), Reading(second)
    spec = compare_spec(one, two, quantity, find_parting(one.run, two.run))
    return figure(spec, theme)


def compare_spec(one: Reading, two: Reading, quantity: str | None, parting: Parting) -> Spec:
    """The spec of `compare`."""
    names = names_of_two(one, two)
    marks = parting_marks(parting)
    if quantity is None:
        return curves_of((one, two), names, marks)
    spec = ratio_of_two(one, two, quantity, names, marks)
    if spec is None:
        raise NoSuchSiteError(
            f"The two runs have no {quantity!r} of the same layers at the same steps."
        )
    return spec


def names_of_two(one: Reading, two: Reading) -> tuple[str, str]:
    """What to call two runs: their files, or A and B where these have one name."""
    names = (one.run.path.stem, two.run.path.stem)
    return names if names[0] != names[1] else (f"A {names[0]}", f"B {names[1]}")


def parting_marks(parting: Parting) -> list[Mark]:
    """Marks of the steps at which two runs part."""
    return [
        Mark(
            float(point.step),
            "info",
            f"they differ by {point.words}",
            f"{point.address} {point.quantity}",
        )
        for point in parting.points
    ]


def parting(first: AnyRun, second: AnyRun, *, theme: str = "light") -> Figure:
    """Where two runs part first: how far each layer is from the other run's, step by step.

    Arguments:
        first, second: runs, or their paths.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure: layers over steps, the colour is the relative difference.
    """
    one, two = Reading(first), Reading(second)
    return figure(parting_spec(one, two, find_parting(one.run, two.run)), theme)


def parting_spec(one: Reading, two: Reading, parting: Parting) -> Spec:
    """The spec of `parting`."""
    if not parting.rows or not np.isfinite(parting.difference).any():
        raise NoSuchSiteError("The two runs have no layer that differs at the same steps.")
    names = names_of_two(one, two)
    quantity = Quantity(
        "difference",
        f"{names[1]} against {names[0]}: relative difference",
        "Largest relative difference of mean and spread of all that is recorded of a site.",
        scale="log",
    )
    rows = one.order.sorted(parting.rows)
    shown = parting.difference[[parting.rows.index(row) for row in rows]]
    grid = Grid(quantity, rows, parting.first_step, parting.last_step, shown, shown, shown)
    return draw_heatmap(grid, parting_marks(parting))
