"""`Sweep`: what changing each place of a network did to a number, per row of the batch."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

from nethook.errors import OptionError, ResultError
from nethook.interp.results.files import read_result, write_result
from nethook.interp.results.statistics import interval_over_rows, mean_over_rows

if TYPE_CHECKING:
    from nethook.drawing.data import Spec
    from nethook.text.table import Table

_FORMAT = "nethook_sweep"
_COLUMNS = 12  # cells that a table shows side by side; of more, the strongest are listed
_LISTED = 20


class Effect(NamedTuple):
    """The mean effect of one cell over the rows, with its interval."""

    site: str
    cell: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sweep:
    """The result of `interp.sweep`: a number per site, cell and row, and what it was without.

    Attributes:
        sites: addresses, in order of execution.
        cells: what was changed at each site, one at a time: numbers of positions, heads or units,
            "row, column" of pixels, the text of an index; one empty text where it was the whole.
        over: what the cells are: "positions", "heads", "units", "pixels", "indices" or "".
        values: the metric with one cell changed, (sites, cells, rows); NaN where there is none.
        base: the metric of the base run, (rows,).
        source: the metric of the source run, (rows,), where there is one.
        floor: how much the metric of an unchanged row differs in a batch of such runs; what lies
            below is noise of the arithmetic, and printed as 0.
        rows: how many cells shared a run. The same number reproduces the same bits; 1 is the
            plain loop.
        runs: forwards of the model, all told.
        whole: why the whole model ran for every cell; "" where calls before the change were
            answered from the base run.
        change: the change, in words.
        seconds: how long it took.
        estimated: whether values are estimates (`interp.attribute`) and not measured.
        grid: height and width, where cells are pixels.
    """

    sites: tuple[str, ...]
    cells: tuple[str, ...]
    over: str
    values: torch.Tensor
    base: torch.Tensor
    source: torch.Tensor | None = None
    floor: float = 0.0
    rows: int = 1
    runs: int = 0
    whole: str = ""
    change: str = ""
    seconds: float = 0.0
    estimated: bool = False
    grid: tuple[int, int] | None = None
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        expected = (len(self.sites), len(self.cells), len(self.base))
        if tuple(self.values.shape) != expected:
            raise ResultError(
                f"`values` must have the shape (sites, cells, rows), {expected}; got "
                f"{tuple(self.values.shape)}."
            )

    # -- numbers ------------------------------------------------------------------------------

    @property
    def effect(self) -> torch.Tensor:
        """The metric with the change minus that of the base run, (sites, cells, rows)."""
        return self.values - self.base

    @property
    def recovered(self) -> torch.Tensor:
        """The effect as a fraction of the difference between source and base.

        Raises:
            ResultError: where there is no source, or a row whose metric is the same in both.
        """
        if self.source is None:
            raise ResultError(
                "`recovered` needs a source run to compare with; the change was "
                f"{self.change or 'another'}. Read `effect`, or sweep with interp.take(source)."
            )
        apart = self.source - self.base
        same = (apart.abs() <= self.floor).nonzero().flatten().tolist()
        if same:
            shown = ", ".join(map(str, same[:5])) + (" …" if len(same) > 5 else "")
            raise ResultError(
                f"`recovered` is not defined: base and source have the same metric in {len(same)} "
                f"of {len(apart)} rows ({shown}). Read `effect`, or leave these rows out."
            )
        return self.effect / apart

    @property
    def mean(self) -> torch.Tensor:
        """The mean effect over rows, (sites, cells); rows without the cell do not count."""
        return mean_over_rows(self.effect)

    def interval(self, confidence: float = 0.95) -> tuple[torch.Tensor, torch.Tensor]:
        """Student's t interval of the mean effect over rows: (low, high), each (sites, cells).

        It takes rows for independent draws. One row has no interval: NaN.
        """
        if not 0 < confidence < 1:
            raise OptionError(f"`confidence` must lie between 0 and 1; got {confidence!r}.")
        return interval_over_rows(self.effect, confidence)

    def top(self, n: int = 10) -> list[Effect]:
        """The cells with the largest mean effect, of either sign."""
        mean, (low, high) = self.mean, self.interval()
        order = mean.abs().nan_to_num(nan=-1.0).flatten().argsort(descending=True, stable=True)
        listed = []
        for flat in order[:n].tolist():
            site, cell = divmod(flat, len(self.cells))
            if not math.isnan(mean[site, cell]):
                numbers = [float(each[site, cell]) for each in (mean, low, high)]
                listed.append(Effect(self.sites[site], self.cells[cell], *numbers))
        return listed

    # -- looks --------------------------------------------------------------------------------

    def figure(
        self, tokens: Sequence[str] | None = None, *, row: int | None = None, theme: str = "light"
    ) -> Any:
        """A Plotly figure of the effects: a heatmap of sites and cells, pixels, or bars.

        Arguments:
            tokens: texts in the place of the numbers of positions.
            row: one row of the batch; otherwise the mean over rows.
            theme: "light" or "dark".
        """
        from nethook.drawing.rendering.render import figure

        return figure(self.spec(tokens, row=row), theme)

    def spec(self, tokens: Sequence[str] | None = None, *, row: int | None = None) -> Spec:
        """The figure as plain data."""
        from nethook.drawing.studies.causes import causes_spec
        from nethook.interp.results.looks import capital

        if tokens is not None and len(tokens) < len(self.cells):
            raise OptionError(
                f"`tokens` must have a text for each of the {len(self.cells)} cells; got "
                f"{len(tokens)}."
            )
        shown = self.mean if row is None else self.effect[..., row].double()
        low, high = self.interval() if row is None else (None, None)
        return causes_spec(
            title=capital(self._title()),
            sites=self.sites,
            cells=tuple(tokens[: len(self.cells)]) if tokens is not None else self.cells,
            over=self.over,
            mean=shown.numpy(),
            low=None if low is None else low.numpy(),
            high=None if high is None else high.numpy(),
            floor=self.floor,
            grid=self.grid,
        )

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    def _title(self) -> str:
        kind = "estimated effect" if self.estimated else "effect"
        return f"{kind} of {self.change}" if self.change else kind

    def table(self) -> Table:
        """Sites by cells; of more cells than fit side by side, the strongest."""
        from nethook.text.numbers import count
        from nethook.text.table import Table

        cells = f" × {len(self.cells)} {self.over}" if self.over else ""
        base = float(self.base.double().mean())
        title = (
            f"{self._title()}: {count(len(self.sites), 'site')}{cells}, "
            f"{count(len(self.base), 'row')}; base {base:.4g}, floor {self.floor:.1g}; "
            f"{count(self.runs, 'run')} of {count(self.rows, 'cell')}"
        )
        if self.whole:
            title += f"\nthe whole model ran for every cell: {self.whole}"
        for note in self.notes:
            title += f"\n{note}"
        if len(self.cells) <= _COLUMNS and self.grid is None:
            names = [cell or "effect" for cell in self.cells]
            rows = [
                (site, *[self._shown(float(number)) for number in numbers])
                for site, numbers in zip(self.sites, self.mean, strict=True)
            ]
            return Table(title, ["site", *names], rows, frozenset(names))
        columns = ["site", "cell", "effect", "95 % interval"]
        listed = [
            (one.site, one.cell, self._shown(one.mean), _interval(one.low, one.high))
            for one in self.top(_LISTED)
        ]
        return Table(title, columns, listed, frozenset({"effect"}))

    def _shown(self, number: float) -> str:
        if math.isnan(number):
            return "–"
        return "0" if abs(number) <= self.floor else f"{number:.4g}"

    def named(self, cells: Sequence[str]) -> Self:
        """The same with other texts for its cells, which tables, figures and files have.

        r.named([tokenizer.decode(i) for i in ids[0]]).save("runs/gpt.studies/patching.json")
        """
        if isinstance(cells, str) or len(cells) < len(self.cells):
            raise OptionError(
                f"`cells` must have a text for each of the {len(self.cells)} cells; got "
                f"{len(cells)}."
            )
        return replace(self, cells=tuple(map(str, cells[: len(self.cells)])))

    # -- files --------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes `path` (JSON) and a safetensors file beside it. `Sweep.load` reads them."""
        tensors = {"values": self.values, "base": self.base}
        if self.source is not None:
            tensors["source"] = self.source
        plain = {
            each.name: getattr(self, each.name)
            for each in fields(Sweep)
            if each.name not in ("values", "base", "source")
        }
        write_result(Path(path), _FORMAT, plain, tensors)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads what `save` has written; nothing in the files is run."""
        plain, tensors = read_result(Path(path), _FORMAT)
        try:
            given: dict[str, Any] = {**_checked(plain), **tensors}
            return cls(**given)
        except (TypeError, ValueError, ResultError) as error:
            raise ResultError(f"{Path(path).name} is not a sweep: {error}") from None


def _interval(low: float, high: float) -> str:
    return "–" if math.isnan(low) else f"{low:.4g} … {high:.4g}"


def _checked(plain: dict[str, Any]) -> dict[str, Any]:
    """What a file says, as the fields need it; an error where it is of another type."""
    texts = ("sites", "cells", "notes")
    kinds: dict[str, Any] = {
        "over": str, "floor": (int, float), "rows": int, "runs": int, "whole": str,
        "change": str, "seconds": (int, float), "estimated": bool,
    }  # fmt: skip
    if set(plain) != {*texts, *kinds, "grid"}:
        raise ResultError(f"it must have exactly the fields {sorted({*texts, *kinds, 'grid'})}.")
    for name in texts:
        value = plain[name]
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise ResultError(f"{name} must be a list of texts; got {json.dumps(value)[:60]}.")
        plain[name] = tuple(value)
    for name, kind in kinds.items():
        if not isinstance(plain[name], kind):
            raise ResultError(f"{name} has the wrong type: {json.dumps(plain[name])[:60]}.")
    grid = plain["grid"]
    if grid is not None:
        if not isinstance(grid, list) or [type(side) for side in grid] != [int, int]:
            raise ResultError("grid must be two whole numbers.")
        plain["grid"] = tuple(grid)
    return plain
