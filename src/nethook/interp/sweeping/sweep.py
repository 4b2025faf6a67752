"""`sweep`: changes one cell at a time, and measures what becomes of the output."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.addresses.tree import Tree
from nethook.errors import SweepError
from nethook.extracting.features import home, moved
from nethook.extracting.progress import Bar
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.results.sweep import Sweep
from nethook.interp.sweeping.base import BaseRun
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
    device = home(model)
    study = _Study(model, device, moved_inputs(base, device), at, over, as_change(change), metric)
    # Heads are inside torch's own layers, which may otherwise run as one kernel.
    whole = layer_by_layer() if kind == "heads" else nullcontext()
    with unchanged(model, study.inputs), torch.no_grad(), whole:
        return study.measured(
            kind, rows, None if to is None else Path(to), Ranks(spread=spread), progress
        )


def moved_inputs(given: object, device: torch.device | None) -> Inputs:
    """Inputs on the device of the model, where that is a single one."""
    inputs = as_inputs(given)
    return Inputs(moved(inputs.args, device), moved(dict(inputs.kwargs), device))


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
        values = torch.full((*shape, base.rows), torch.nan, dtype=base.metric.dtype)
        done = torch.zeros(shape, dtype=torch.bool)
        kept = None
        if to is not None:
            part = to if ranks.count == 1 else to.with_name(f"{to.stem}.rank{ranks.rank}.json")
            kept = Kept(part, self._question(kind, labels, count, ranks))
        floor = kept.read(values, done) if kept else 0.0
        chunks = ranks.share(chunked(places, count))
        if bool(done.any()):
            left = ([place for place in chunk if not done[place.at]] for chunk in chunks)
            chunks = [chunk for chunk in left if chunk]
        runner = Runner(base, base.sites, self._change)
        bar = Bar(len(chunks), 0, shown=progress, label="sweeping", unit="cells")
        with runner.attached(single=count == 1, by_tokens=kind == "positions"), bar:
            while chunks:
                chunk, unchanged_too = chunks.pop(0), False
                numbers = runner.run_joined(chunk) if joining and _several(chunk) else None
                if numbers is not None:
                    unchanged_too = True
                elif joining and _several(chunk):
                    joining = False  # what is left is divided anew; one per run would be exact
                    count = max(2, self._rows(rows, len(places), len(labels), joining=False)[0])
                    chunks = chunked([place for each in (chunk, *chunks) for place in each], count)
                    bar.expect(len(chunks))
                    continue
                else:
                    # In the first run of several, one copy of the base stays as it is.
                    unchanged_too = count > 1 and (runner.spares_tokens or not done.any())
                    numbers = runner.run([*chunk, None] if unchanged_too else chunk)
                if unchanged_too:
                    floor = max(floor, float((numbers[-1] - base.metric).abs().max()))
                _put(numbers[: len(chunk)], chunk, values, done)
                if kept is not None:
                    kept.write(values, done, floor, now=False)
                bar.advance(len(chunk))
        if kept is not None:
            kept.write(values, done, floor, now=True)
        ranks.merged(values, done)
        pixels = kind == "pixels"
        result = Sweep(
            sites=tuple(label(site) for site in base.sites),
            cells=tuple(labels),
            over=kind,
            values=values,
            base=base.metric,
            source=self._change.source,
            floor=ranks.greatest(floor),
            rows=ranks.least(count),
            runs=ranks.total(runner.runs),
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


def _put(
    numbers: torch.Tensor, chunk: list[Place], values: torch.Tensor, done: torch.Tensor
) -> None:
    """Writes what was measured to its places, all at once; NaN in rows that have no such cell."""
    for number, place in enumerate(chunk):
        if place.cell.rows is not None:
            numbers[number] = torch.where(place.cell.rows, numbers[number], torch.nan)
    at = torch.tensor([place.at for place in chunk]).unbind(1)
    values[at] = numbers
    done[at] = True


def _several(chunk: list[Place]) -> bool:
    """Whether the cells of a chunk are of several sites."""
    return len({place.at[0] for place in chunk}) > 1


def _grid(value: torch.Tensor) -> tuple[int, int]:
    height, width = value.shape[-2:]
    return int(height), int(width)
