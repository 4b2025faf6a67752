"""`integrated_gradients`: gradients along a straight path, until they add up."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch
from torch import nn

from nethook.addresses.patterns import Pattern
from nethook.errors import OptionError
from nethook.extracting.progress import Bar
from nethook.interp.attributions.baselines import baseline_of
from nethook.interp.attributions.batches import gradients_of_variants, rows_per_run, runs_of
from nethook.interp.attributions.subject import Subject, subject
from nethook.interp.attributions.targets import Given
from nethook.interp.results.attribution import Attribution


def integrated_gradients(
    model: nn.Module,
    x: object,
    target: Given = None,
    at: Pattern | None = None,
    *,
    baseline: Any = None,
    tol: float | None = 1e-3,
    steps: int = 8,
    max_steps: int = 512,
    progress: bool | None = None,
) -> Attribution:
    """What each element adds to a target, on the straight path from a baseline to the input.

        a = interp.integrated_gradients(model, images, target=3, tol=1e-3)
        a.values, a.delta, a.steps, a.figure()
        interp.integrated_gradients(model, ids, target=fn, at="bert.embeddings", baseline=pad_ids)

    The values of a row add up to `score − start`, the target for the input minus that for the
    baseline, but for the error of the quadrature, `delta`. Steps are points of Gauss–Legendre
    quadrature. They double, for each row by itself, until its `delta` is at most `tol`.

    Arguments:
        model, x, target, at, progress: as in `interp.saliency`.
        baseline: what the path starts from: a number, a tensor of the value's shape or of one row;
            at a site also the inputs of a run, whose value is then taken there. It has to be named
            where zero is not neutral: for a table of features, at a site, and for pictures and
            signals that do not reach zero.
        tol: the largest completeness error of a row, in units of the target. None takes `steps`
            steps and no more.
        steps: how many to begin with.
        max_steps: where doubling ends. What is still above `tol` then is warned of.

    Returns:
        An `Attribution` with `start`, `delta` and `steps` per row.

    Cost: as many gradients as steps, and as many again for the smaller numbers before. They run in
    batches that fit memory.
    """
    check_steps(tol, steps=steps, max_steps=max_steps)
    with subject(model, x, target, at) as study:
        base, words = baseline_of(study, baseline)
        everything = torch.arange(study.rows)
        score, start = study.score, study.scores(base, everything)
        path = _Path(study, base, score.double().cpu() - start.double().cpu())
        rows, count = everything, steps
        while True:
            path.integrate(rows, count, progress)
            rows = rows[path.delta[rows].abs() > (tol if tol is not None else math.inf)]
            if not len(rows) or 2 * count > max_steps:
                break
            rows, count = everything if study.target.whole else rows, 2 * count
        return study.result(
            "integrated gradients", path.values, score=score, start=start, delta=path.delta,
            steps=path.steps, baseline=words,
            notes=above_tolerance(
                "integrated_gradients", path.delta, tol, f"{count} steps", "max_steps"
            ),
        )  # fmt: skip


class _Path:
    """The straight path from the baseline to the value, and what was found along it."""

    def __init__(self, study: Subject, base: torch.Tensor, change: torch.Tensor) -> None:
        self._study = study
        self._base = base
        self._step = study.value - base
        self._change = change  # of the target, over the path
        self._per_run = 0
        self.values = torch.zeros_like(study.value)
        self.delta = torch.full((study.rows,), torch.inf, dtype=torch.float64)
        self.steps = torch.zeros(study.rows, dtype=torch.long)

    def integrate(self, rows: torch.Tensor, count: int, progress: bool | None) -> None:
        """Integrates over the path of some rows with so many points."""
        nodes, weights = np.polynomial.legendre.leggauss(count)
        base, step = self._base, self._step
        times = torch.tensor((nodes + 1) / 2, dtype=step.dtype, device=step.device)
        shares = torch.tensor(weights / 2, dtype=torch.float64, device=step.device)
        self._per_run = self._per_run or rows_per_run(self._study, count * len(rows))
        mean = torch.zeros(step.shape, dtype=torch.float64, device=step.device)
        aside = [1] * (step.ndim - 1)

        def along(which: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
            return base[which] + times[node].view(-1, *aside) * step[which]

        runs = runs_of(count * len(rows), self._per_run)
        with Bar(runs, 0, shown=progress, label=f"{count} steps", unit="gradients") as bar:
            for run in gradients_of_variants(self._study, rows, count, along, self._per_run, bar):
                weighted = run.grads.double() * shares[run.variant].view(-1, *aside)
                mean.index_add_(0, run.which.to(mean.device), weighted)
        found = mean[rows] * step[rows]
        self.delta[rows] = found.flatten(1).sum(1).cpu() - self._change[rows]
        self.values[rows] = found.to(step.dtype)
        self.steps[rows] = count


def check_steps(tol: float | None, **counts: int) -> None:
    """Refuses a tolerance or numbers of steps that mean nothing."""
    if tol is not None and (isinstance(tol, bool) or not tol > 0):
        raise OptionError(f"`tol` must be a positive number, or None for no doubling; got {tol!r}.")
    for name, value in counts.items():
        if type(value) is not int or value < 1:
            raise OptionError(f"`{name}` must be a positive number; got {value!r}.")


def above_tolerance(
    name: str, delta: torch.Tensor, tol: float | None, effort: str, option: str
) -> tuple[str, ...]:
    """A note, and a warning, where rows are above the tolerance."""
    above = 0 if tol is None else int((~(delta.abs() <= tol)).sum())
    if not above:
        return ()
    note = f"{above} of {len(delta)} rows are above tol={tol:g} at {effort}"
    warnings.warn(f"{name}: {note}; raise {option}.", stacklevel=3)
    return (note,)
