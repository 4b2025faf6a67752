"""`sweep`: changes one cell at a time, and measures what becomes of the output."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.tree import Tree
from nethook.errors import SweepError
from nethook.extracting.progress import Bar
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.devices import device_of, moved_inputs
from nethook.interp.results.sweep import Sweep
from nethook.interp.sweeping.base import MIXED, BaseRun
from nethook.interp.sweeping.batches import close
from nethook.interp.sweeping.cells import Over, check_over
from nethook.interp.sweeping.changes import Change, as_change
from nethook.interp.sweeping.chunks import chosen_rows, chunked
from nethook.interp.sweeping.joining import may_join
from nethook.interp.sweeping.keeping import Kept, digest
from nethook.interp.sweeping.ranks import Ranks
from nethook.interp.sweeping.runner import Place, Runner
from nethook.interp.sweeping.sites import Wanted, label
from nethook.restoring.unchanged import unchanged


def sweep(
    model: nn.Module,
    base: object,
    at: object = None,
    over: Over = None,
    change: object = None,
    metric: Callable[[Any], torch.Tensor] | None = None,
    rows: int | None = None,
    *,
    to: str | Path | None = None,
    spread: bool = False,
    progress: bool | None = None,
) -> Sweep:
    """Changes each cell of each site, one at a time, and measures the output.

        r = interp.sweep(
            model, base, at="transformer.h.*", over="positions", change=interp.take(source),
            metric=lambda out: out.logits[:, -1, a] - out.logits[:, -1, b],
        )
        r.effect, r.top(), r.figure()

    Arguments:
        model: any `nn.Module`. It runs in the mode it is in, without gradients; everything is
            left as it was.
        base: inputs of the run that is changed: a tensor, a tuple, a mapping, or
            `nethook.inputs(...)`.
        at: patterns of modules or operations whose output is changed, as in `trace`; a mapping
            from a name to the part of a nested output, otherwise its first tensor; None is the
            input itself.
        over: what is changed at once: None (all of a value), "positions", "heads", "units",
            "pixels", or a list of index tuples of a row's value.
        change: what is put there: `take(source)`, `mean_of(data)`, `resample(pool)`,
            `noise_at(std)`, one of `nethook.edits`, or a function of the value.
        metric: from the model's output to one number per row.
        rows: how many cells share a run, each with its own copy of the base; None: measured. 1
            gives the numbers of the plain loop, bit for bit.
        to: a file for the result. A sweep that was broken off goes on from what is there.
        spread: over the ranks of torchrun: to be called on each, and each gets the whole result.
        progress: whether to show a progress bar; None: on a terminal and in a notebook.

    Returns:
        A `Sweep`.

    Cost: two runs to begin with, then a run for every `rows` cells. Calls that end before the first
    changed site are answered from the base run where that is exact; `whole` says why not.
    """
    if metric is None or change is None:
        missing = "metric" if metric is None else "change"
        raise SweepError(f"`{missing}` must be given: {missing}=...")
    if rows is not None and (type(rows) is not int or rows < 1):
        raise SweepError(f"`rows` must be a positive number of cells; got {rows!r}.")
    kind = check_over(over)
    device = device_of(model)
    study = _Study(model, device, moved_inputs(base, device), at, over, as_change(change), metric)
    # Heads are inside torch's own layers, which may otherwise run as one kernel.
    whole = layer_by_layer() if kind == "heads" else nullcontext()
    with unchanged(model, study.inputs), torch.no_grad(), whole:
        return study.measured(
            kind, rows, None if to is None else Path(to), Ranks(spread=spread), progress
        )


@dataclass
class _SoFar:
    """What was measured, (sites, cells, rows), and which cells are done, (sites, cells)."""

    values: torch.Tensor
    done: torch.Tensor
    rows: int  # cells that share a run
    floor: float = 0.0
    runs: int = 0
    kept: Kept | None = None

    def begin_again(self) -> None:
        """Nothing is measured; one cell per run."""
        self.values.fill_(torch.nan)
        self.done.fill_(False)
        self.rows, self.floor = 1, 0.0

    def unchanged(self, numbers: torch.Tensor, base: torch.Tensor) -> None:
        """The metric of an unchanged copy in a batch, beside that of the base alone."""
        apart = (numbers - base).abs().nan_to_num(nan=0.0, posinf=0.0)
        self.floor = max(self.floor, float(apart.max()))

    def put(self, numbers: torch.Tensor, chunk: list[Place]) -> None:
        """Writes numbers to their places, all at once; NaN in rows that have no such cell."""
        for number, place in enumerate(chunk):
            if place.cell.rows is not None:
                numbers[number] = torch.where(place.cell.rows, numbers[number], torch.nan)
        at = torch.tensor([place.at for place in chunk]).unbind(1)
        self.values[at] = numbers
        self.done[at] = True
        if self.kept is not None:
            self.kept.write(self.values, self.done, self.floor, now=False)


class _Study:
    """One sweep, from its arguments to its result; what changes may ask of it."""

    def __init__(
        self, model: nn.Module, device: torch.device | None, inputs: Inputs, at: object,
        over: Over, change: Change, metric: Callable[[Any], torch.Tensor],
    ) -> None:  # fmt: skip
        self.inputs = inputs
        self._model = model
        self._device = device
        self._at = at
        self._over = over
        self._change = change
        self._metric = metric
        self._base: BaseRun | None = None

    @property
    def base(self) -> BaseRun:
        """The base run."""
        assert self._base is not None
        return self._base

    # -- for changes --------------------------------------------------------------------------

    def values(self, inputs: object) -> dict[str, list[torch.Tensor]]:
        """The values of all sites for other inputs, by site and call."""
        beside = self.base.beside
        if beside is not None and inputs is self._change.beside:
            return beside.values
        given = moved_inputs(inputs, self._device)
        recording = self.base.recorded(given)
        self._output = given, recording.output
        found = {}
        for site in self.base.sites:
            if site.is_input:
                found[site.address] = [site.tensor((given.args, dict(given.kwargs)))]
                continue
            called = recording.calls.get(site.address)
            if called is None or not called.ended:
                raise SweepError(
                    f"{site.address!r} ran with base and not with the inputs that values are "
                    "taken from."
                )
            found[site.address] = [site.tensor(output) for output in called.outputs]
        return found

    def metric(self, inputs: object) -> torch.Tensor:
        """The metric for the inputs whose values were asked for last."""
        beside = self.base.beside
        if beside is not None and inputs is self._change.beside:
            return beside.metric
        numbers = self.base.checked(self._output[1])
        if len(numbers) != self.base.rows:
            raise SweepError(
                f"`source` must have as many rows as base, {self.base.rows}; got {len(numbers)}."
            )
        return numbers

    def rows_of(self, site: str) -> int:
        """The dimension of rows at a site."""
        return next(each.batch for each in self.base.sites if each.address == site)

    # -- the sweep ----------------------------------------------------------------------------

    def measured(
        self, kind: str, rows: int | None, to: Path | None, ranks: Ranks, progress: bool | None
    ) -> Sweep:
        """The result."""
        begun = time.perf_counter()
        tree = Tree(self._model)
        wanted = Wanted(tree, self._at, kind)
        source = None
        if rows != 1 and self._change.beside is not None:
            source = moved_inputs(self._change.beside, self._device)
        base = self._base = BaseRun(self._model, tree, self.inputs, self._metric, wanted, source)
        cells = [base.cells(self._over, site) for site in base.sites]
        labels = max(([cell.label for cell in row] for row in cells), key=len)
        places = [
            Place(site, cell, (number, labels.index(cell.label)))
            for number, (site, row) in enumerate(zip(base.sites, cells, strict=True))
            for cell in row
        ]
        joining = not base.whole and may_join(base.sites, base.layout.dims)
        count, notes = self._rows(rows, len(places), len(labels), joining=joining)
        count = ranks.least(count)
        if count == 1:
            base.beside = None  # one cell per run is exact, and so is its source
        self._change.prepare(self)
        shape = len(base.sites), len(labels)
        so_far = _SoFar(
            torch.full((*shape, base.rows), torch.nan, dtype=base.metric.dtype),
            torch.zeros(shape, dtype=torch.bool),
            count,
        )
        if to is not None:
            part = to if ranks.count == 1 else to.with_name(f"{to.stem}.rank{ranks.rank}.json")
            so_far.kept = Kept(part, self._question(kind, labels, count, ranks))
            so_far.floor = so_far.kept.read(so_far.values, so_far.done)
        apart = self._rows(rows, len(places), len(labels), joining=False)[0] if joining else 0
        by_tokens = kind == "positions"
        mix = not self._run(places, so_far, ranks, progress, apart=apart, by_tokens=by_tokens)
        if ranks.greatest(float(mix)):  # what shared a run is wrong: once more, one by one
            base.mixed = MIXED
            base.whole = base.whole or MIXED
            _, notes = self._rows(rows, len(places), len(labels), joining=False)
            if base.beside is not None:
                base.beside = None
                self._change.prepare(self)
            so_far.begin_again()
            self._run(places, so_far, ranks, progress)
        kept, values, done = so_far.kept, so_far.values, so_far.done
        if kept is not None:
            kept.write(values, done, so_far.floor, now=True)
        ranks.merged(values, done)
        without = int(base.metric.isnan().sum())
        if without:
            notes += (f"the metric of base is NaN in {without} of {base.rows} rows: left out",)
        pixels = kind == "pixels"
        result = Sweep(
            sites=tuple(label(site) for site in base.sites),
            cells=tuple(labels),
            over=kind,
            values=values,
            base=base.metric,
            source=self._change.source,
            floor=ranks.greatest(so_far.floor),
            rows=ranks.least(so_far.rows),
            runs=ranks.total(so_far.runs),
            whole=base.whole,
            change=self._change.text,
            seconds=time.perf_counter() - begun,
            grid=_grid(base.sites[0].values[0]) if pixels else None,
            notes=notes,
        )
        if to is not None and ranks.rank == 0:
            result.save(to)
        if kept is not None:
            kept.remove()
        return result

    def _run(
        self, places: list[Place], so_far: _SoFar, ranks: Ranks, progress: bool | None, *,
        apart: int = 0, by_tokens: bool = False,
    ) -> bool:  # fmt: skip
        """Runs what is not done yet; False where rows of a batch depend on each other after all.

        In every run of several cells one copy of the base stays as it is, after all others. That it
        does so between two others was seen before.

        `apart` is how many cells share a run where copies cannot join on the way; 0: they do not.
        """
        base, count, joining = self.base, so_far.rows, apart > 0
        shared = ranks.share(chunked(places, count))
        left = ([place for place in chunk if not so_far.done[place.at]] for chunk in shared)
        chunks = [chunk for chunk in left if chunk] if bool(so_far.done.any()) else shared
        runner = Runner(base, base.sites, self._change)
        bar = Bar(len(chunks), 0, shown=progress, label="sweeping", unit="cells")
        try:
            with runner.attached(single=count == 1, by_tokens=by_tokens), bar:
                while chunks:
                    chunk = chunks.pop(0)
                    together = joining and _several(chunk)
                    numbers = runner.run_joined(chunk) if together else None
                    if numbers is None and together:
                        joining = False  # what is left is divided anew; one per run would be exact
                        count = so_far.rows = max(2, apart)
                        chunks = chunked([p for each in (chunk, *chunks) for p in each], count)
                        bar.expect(len(chunks))
                        continue
                    if numbers is None:
                        numbers = runner.run([*chunk, None] if count > 1 else chunk)
                    if count > 1:
                        if not close(numbers[-1], base.metric, base.noise):
                            return False
                        so_far.unchanged(numbers[-1], base.metric)
                    so_far.put(numbers[: len(chunk)], chunk)
                    bar.advance(len(chunk))
        finally:
            so_far.runs += runner.runs
        return True

    def _rows(
        self, rows: int | None, cells: int, of_a_site: int, *, joining: bool
    ) -> tuple[int, tuple[str, ...]]:
        base = self.base
        if rows is None:
            return chosen_rows(base, cells, of_a_site, joining=joining), ()
        if rows > 1 and base.mixed:
            return 1, (f"one cell per run, not {rows}: {base.mixed}",)
        return rows, ()

    def _question(self, kind: str, labels: list[str], rows: int, ranks: Ranks) -> dict[str, Any]:
        base = self.base
        source = self._change.source
        return {
            "sites": [label(site) for site in base.sites],
            "cells": labels,
            "over": kind,
            "change": self._change.text,
            "base": digest(base.metric, *([] if source is None else [source])),
            "rows": rows,
            "ranks": [ranks.rank, ranks.count],
        }


def _several(chunk: list[Place]) -> bool:
    """Whether the cells of a chunk are of several sites."""
    return len({place.at[0] for place in chunk}) > 1


def _grid(value: torch.Tensor) -> tuple[int, int]:
    height, width = value.shape[-2:]
    return int(height), int(width)
