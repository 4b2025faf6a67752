"""`sweep`: the same model at several widths; scales that depend on it are wrong at some."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from nethook.errors import OptionError
from nethook.init.proof.measure import verify
from nethook.restoring.randomness import random_states_unchanged

Step = Callable[[nn.Module], Any]


@dataclass(frozen=True, slots=True)
class SweptLayer:
    """One layer over all widths: its scales, and the power of the width that they grow with."""

    address: str
    forward: tuple[float, ...]
    backward: tuple[float, ...]
    exponent: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, repr=False)
class Sweep:
    """A coordinate check: the scale of each layer's signal at several widths."""

    widths: tuple[int, ...]
    steps: int
    rows: tuple[SweptLayer, ...]

    def __iter__(self) -> Iterator[SweptLayer]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def ok(self, most: float = 0.25) -> bool:
        """Whether no layer's scale grows or shrinks faster than that power of the width."""
        return all(abs(row.exponent) <= most for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        rows = [row.to_dict() for row in self.rows]
        return {"widths": list(self.widths), "steps": self.steps, "rows": rows}

    def figure(self, *, theme: str = "light") -> Any:
        """A Plotly figure: one line per layer, its scale over the width."""
        from nethook.drawing.rendering.render import figure
        from nethook.drawing.scales import scales_over_width

        return figure(scales_over_width(self.to_dict()), theme)

    def _table(self) -> Any:
        from nethook.text.numbers import count
        from nethook.text.table import Table

        after = f" after {count(self.steps, 'step')}" if self.steps else ""
        title = (
            f"scales{after} at {count(len(self.widths), 'width')}: {count(len(self.rows), 'layer')}"
        )
        columns = ["layer", *map(str, self.widths), "exponent"]
        rows = [
            (row.address, *(f"{scale:.4g}" for scale in row.forward), f"{row.exponent:+.3f}")
            for row in self.rows
        ]
        return Table(title, columns, rows, frozenset(columns[1:]))

    def __repr__(self) -> str:
        return str(self._table().text())

    def _repr_html_(self) -> str:
        return str(self._table().html())


def sweep(
    make: Callable[[int], nn.Module],
    widths: Sequence[int],
    inputs: Any,
    *,
    train: Step | None = None,
    steps: int = 0,
    seeds: int = 1,
) -> Sweep:
    """Makes a model at several widths and compares the scales of its layers.

        nethook.init.sweep(lambda width: start(MLP(width)), [64, 128, 256], inputs)

    Arguments:
        make: a function of a width that gives a model, initialised as it is to be checked. Layers
            must come in the same order at every width.
        widths: at least two.
        inputs: a batch, the same for all.
        train: one step of training, `train(model)`; with `steps` of them, what is compared is the
            scale after these steps (the coordinate check of μP). It may keep an optimizer itself.
        seeds: over how many models of each width the mean is taken.

    Returns:
        A `Sweep`: for each layer its scale at each width, and the power of the width that fits.
    """
    if len(set(widths)) < 2:
        raise OptionError(f"`widths` must be at least two different numbers; got {list(widths)!r}.")
    if steps and train is None:
        raise OptionError(
            f"`train` must be a function where there are steps; got None and steps={steps!r}. "
            "It does one step: train(model)."
        )
    measured = [
        [_scales(make, width, inputs, train, steps, seed) for seed in range(seeds)]
        for width in widths
    ]
    layers = [layer.address for layer in measured[0][0]]
    for width, reports in zip(widths, measured, strict=True):
        for report in reports:
            if len(report) != len(layers):
                raise OptionError(
                    f"`make` must give the same layers at every width; got {len(layers)} at width "
                    f"{widths[0]} and {len(report)} at width {width}."
                )
    rows = []
    for index, address in enumerate(layers):
        forward = tuple(_mean([r[index].forward for r in reports]) for reports in measured)
        backward = tuple(_mean([r[index].backward for r in reports]) for reports in measured)
        rows.append(SweptLayer(address, forward, backward, _exponent(widths, forward)))
    return Sweep(tuple(widths), steps, tuple(rows))


def _scales(
    make: Callable[[int], nn.Module], width: int, inputs: Any, train: Step | None, steps: int,
    seed: int,
) -> list[Any]:  # fmt: skip
    with random_states_unchanged(seed=seed):
        model = make(width)
        if train is not None:
            for _ in range(steps):
                train(model)
        return list(verify(model, inputs))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _exponent(widths: Sequence[int], scales: Sequence[float]) -> float:
    """The slope of log scale over log width, by least squares."""
    if not all(scale > 0 and math.isfinite(scale) for scale in scales):
        return math.nan
    x, y = [math.log(w) for w in widths], [math.log(s) for s in scales]
    mean_x, mean_y = _mean(x), _mean(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)
