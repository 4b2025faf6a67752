"""The panels of a run's overview: loss, learning rate, gradients, updates, what was logged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nethook.drawing.data import Floats, Integers, Line, Panel
from nethook.drawing.palette import BLUE, BROWN, GREEN, GREY, LINES, PURPLE
from nethook.figures.reading import Reading
from nethook.runs import names
from nethook.runs.reading.losses.scalars import rate_name
from nethook.runs.reading.losses.scores import shown_scores
from nethook.runs.reading.losses.shown import ShownLoss, phase_of
from nethook.runs.reading.results import Scalar, Series

_SPARSE: Final = 0.6
_LOGGED: Final = 4  # panels of accuracies and of what the user logged
_ACCURACY: Final = "The share of right answers in each evaluation."
_BETWEEN: Final = 500  # points of a rate that does not change
_FEW: Final = 40  # points below which each is marked
_MARKED: Final = 400  # and below which those of a thinned line are


def panels(reading: Reading) -> list[Panel]:
    """All panels that the run has something for."""
    made = [
        loss_panel(reading),
        rate_panel(reading),
        norm_panel(reading),
        ratio_panel(reading),
        *logged_panels(reading),
    ]
    return [panel for panel in made if panel is not None]


def loss_panel(reading: Reading) -> Panel | None:
    """Every loss, in training and in evaluation, point by point."""
    lines = []
    for phase, word, first in (("train", "training", 0), ("eval", "evaluation", 1)):
        drawn = [loss for loss in reading.losses if loss.phase == phase and loss.finite]
        for index, loss in enumerate(drawn):
            # One loss is made in one place in training and in another in evaluation.
            name = f"{word}, {_called(loss.name)}" if len(drawn) > 1 else word
            colour = LINES[(2 * index + first) % len(LINES)]
            lines.append(_loss_line(loss, name, colour=colour, markers=phase == "eval"))
    if not lines:
        return None
    return Panel("loss", lines, explain_losses(reading), scale=_scale(lines), tall=2.0)


def _called(loss: str) -> str:
    """The line at which a loss is made; where a line makes several, which of them."""
    place, sign, number = loss.rpartition("#")
    return f"{place}, no. {int(number) + 1}" if sign and number.isdecimal() else loss


def explain_losses(reading: Reading) -> str:
    """What the numbers of the losses are."""
    counted = list(dict.fromkeys(loss.counted for loss in reading.losses))
    return (
        f"The loss, without the factor of a loss scaler ({'; '.join(counted)}); a band from min to "
        "max."
    )


def _loss_line(loss: ShownLoss, name: str, *, colour: str, markers: bool) -> Line:
    band = not markers and bool(
        (loss.least != loss.greatest).any() and loss.value is not loss.least
    )
    return Line(
        name, loss.step, loss.value, loss.least if band else None, loss.greatest if band else None,
        markers=markers or len(loss.step) == 1, colour=colour,
    )  # fmt: skip


def rate_panel(reading: Reading) -> Panel | None:
    """The learning rates, held until they change."""
    lines: list[Line] = []
    kinds = reading.run.info.get("optimizers")
    optimizers = kinds if isinstance(kinds, dict) else {}
    for name, scalar in reading.scalars.items():
        if name.startswith("lr:") and len(scalar):
            called = rate_name(name, reading.scalars, optimizers).removeprefix("learning rate, ")
            held = _held(scalar, max(reading.last_step, int(scalar.step[-1])))
            lines.append(Line(called, *held, colour=GREY if not lines else "", held=True))
    if not lines:
        return None
    lines = _distinct(lines)
    explain = "The learning rate of each group of each optimizer."
    return Panel("learning rate", lines, explain, scale=_scale(lines))


def _held(scalar: Scalar, last: int) -> tuple[Integers, Floats]:
    """A value that holds until it changes, with points between: the cursor reads those near it."""
    first = int(scalar.step[0])
    between = np.linspace(first, last, min(_BETWEEN, last - first + 1)).astype(np.int64)
    step = np.unique(np.concatenate((scalar.step, scalar.step[1:] - 1, between)))
    return step, scalar.value[np.searchsorted(scalar.step, step, side="right") - 1]


def norm_panel(reading: Reading) -> Panel | None:
    """The norm of all gradients, before and after clipping."""
    wanted = (
        (names.GRAD_NORM_UNCLIPPED, "before clipping", BROWN),
        (names.GRAD_NORM, "as used", GREEN),
        (names.CLIP_LIMIT, "clipped to", GREY),
    )
    lines = _loop_lines(reading, wanted)
    if not lines:
        return None
    explain = "Norm of all gradients together, as the optimizers use them, and before clipping."
    return Panel("gradient norm", lines, explain, scale="log")


def ratio_panel(reading: Reading) -> Panel | None:
    """All updates by all parameters."""
    lines = _loop_lines(reading, ((names.UPDATE_RATIO, "update / weight", PURPLE),))
    if not lines:
        return None
    explain = "Norm of all updates by norm of all parameters; about 0.001 a step is usual."
    return Panel("update / weight", lines, explain, scale="log")


def logged_panels(reading: Reading) -> list[Panel]:
    """Accuracies, and what the user's own program logged."""
    scores = shown_scores(reading.scalars)
    made = []
    for score in list(scores.values())[:_LOGGED]:
        line = Line(score.label, score.scalar.step, score.scalar.value, markers=True, colour=GREEN)
        made.append(Panel(score.label, [line], _ACCURACY))
    for name, scalar in reading.scalars.items():
        if names.is_own_scalar(name) or phase_of(name) is not None or not len(scalar):
            continue
        if name in scores:
            continue
        few = len(scalar) < 60
        line = Line(name, scalar.step, scalar.value, markers=few, colour=BLUE)
        made.append(Panel(name, [line], "Logged by the training program."))
    return made[:_LOGGED]


def _loop_lines(reading: Reading, wanted: Sequence[tuple[str, str, str]]) -> list[Line]:
    """Numbers of the loop: every step that is kept one by one, else the windows."""
    kept = {
        quantity: reading.scalars[quantity]
        for quantity, _, _ in wanted
        if quantity in reading.scalars and len(reading.scalars[quantity])
    }
    missing = [(names.LOOP, quantity) for quantity, _, _ in wanted if quantity not in kept]
    windows = {series.quantity: series for series in reading.series(missing)}
    lines = []
    for quantity, name, colour in wanted:
        if quantity in kept:
            line = _kept_line(kept[quantity], name, colour)
        elif quantity in windows:
            line = _line(windows[quantity], name, colour=colour)
        else:
            continue
        if np.isfinite(line.value).any():
            lines.append(line)
    return lines


def _kept_line(scalar: Scalar, name: str, colour: str) -> Line:
    """Every point that is kept, after the buckets of those that are not any more."""
    older = scalar.older
    if older is None or not len(older):
        steps = int(scalar.step[-1] - scalar.step[0]) + 1
        # Thinned: show where it was measured.
        few = len(scalar) < _FEW or (len(scalar) < _SPARSE * steps and len(scalar) < _MARKED)
        return Line(name, scalar.step, scalar.value, markers=few, colour=colour)
    step = np.concatenate((older.last_step, scalar.step))
    parts = (older.mean, older.min, older.max)
    value, least, greatest = (np.concatenate((part, scalar.value)) for part in parts)
    return Line(name, step, value, least, greatest, colour=colour)


def _line(series: Series, name: str, *, colour: str, markers: bool = False) -> Line:
    """A series of one number a step: its means, with least and greatest where they differ."""
    there = series["count"] > 0
    step = series.last_step[there]
    mean, least, greatest = (series[field][there] for field in ("mean", "min", "max"))
    band = not markers and bool((series["count"][there] > 1).any())
    markers = markers or there.sum() < _SPARSE * len(series)  # thinned: show where it was measured
    return Line(
        name, step, mean, least if band else None, greatest if band else None,
        markers=markers, colour=colour,
    )  # fmt: skip


def _scale(lines: Sequence[Line]) -> str:
    """Logarithmic where the values are positive and span more than two decades."""
    values: Floats = np.concatenate([np.asarray(line.value, dtype=np.float64) for line in lines])
    finite = values[np.isfinite(values)]
    if finite.size and finite.min() > 0 and finite.max() / finite.min() > 50:
        return "log"
    return "linear"


def _distinct(lines: list[Line]) -> list[Line]:
    """Lines that differ: groups with one schedule are one line, named after all of them."""
    kept: list[Line] = []
    for line in lines:
        same = next(
            (
                index
                for index, other in enumerate(kept)
                if np.array_equal(other.step, line.step) and np.array_equal(other.value, line.value)
            ),
            None,
        )
        if same is None:
            kept.append(line)
        else:
            twin = kept[same]
            kept[same] = replace(twin, name=f"{twin.name}, {line.name}")
    return kept
