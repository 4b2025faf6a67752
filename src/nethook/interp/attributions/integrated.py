"""`integrated_gradients`: gradients along a straight path, until they add up."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from nethook.addresses.patterns import Pattern
from nethook.errors import OptionError
from nethook.extracting.progress import Bar
from nethook.interp.attributions.baselines import baseline_of
from nethook.interp.attributions.batches import (
    Gradients,
    Shared,
    gradients_of_variants,
    rows_per_run,
    runs_of,
)
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
    spread: bool = False,
    progress: bool | None = None,
) -> Attribution:
    """What each element adds to a target, on the straight path from a baseline to the input.

        a = interp.integrated_gradients(model, images, target=3, tol=1e-3)
        a.values, a.delta, a.steps, a.figure()
        interp.integrated_gradients(model, ids, target=fn, at="bert.embeddings", baseline=pad_ids)

    The values of a row add up to `score − start`, the target for the input minus that for the
    baseline, but for the error of the quadrature, `delta`. Steps are points on the path at which
    the gradient is taken. They double, for each row by itself, until its `delta` is at most `tol`:
    the first two numbers of steps are points of Gauss–Legendre quadrature, which is best for smooth
    networks. Later ones are evenly spaced and keep what was computed before.

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
        spread: over the ranks of torchrun: to be called on each with all rows, and each gets the
            whole result. A function as target sees all rows at once, so nothing is shared then.

    Returns:
        An `Attribution` with `start`, `delta` and `steps` per row.

    Cost: as many gradients as steps of each try; where the gradient jumps, as many as the last
    one and three times the first number more. They run in batches that fit memory.
    """
    check_steps(tol, steps=steps, max_steps=max_steps)
    with subject(model, x, target, at) as study:
        base, words = baseline_of(study, baseline)
        everything = torch.arange(study.rows)
        shared = Shared(study, spread=spread)
        score, start = study.score, study.scores(base, everything)
        path = _Path(study, base, score.double().cpu() - start.double().cpu())
        rows, count, worst, even = shared.rows, steps, math.inf, False
        while True:
            integrate = path.evenly if even else path.by_gauss
            integrate(rows, count, progress)
            rows = rows[path.delta[rows].abs() > (tol if tol is not None else math.inf)]
            if not len(rows) or 2 * count > max_steps:
                break
            before, worst = worst, float(path.delta[rows].abs().max())
            even = even or _jumps(before, worst, tol or math.inf, max_steps // count)
            rows, count = everything if study.target.whole else rows, 2 * count
        path.values, path.delta, path.steps = map(
            shared.whole, (path.values, path.delta, path.steps)
        )
        return study.result(
            "integrated gradients", path.values, score=score, start=start, delta=path.delta,
            steps=path.steps, baseline=words,
            notes=above_tolerance(
                "integrated_gradients", path.delta, tol, f"{count} steps", "max_steps"
            ),
        )  # fmt: skip


_DROP: Final = 8
"""With twice as many points, the error on a smooth path drops by more than that."""


def _jumps(before: float, error: float, tol: float, factor: int) -> bool:
    """Whether the gradient seems to jump along the path, after two numbers of points.

    Then no rule is better than even points, of which none is computed twice, if `factor` times as
    many may be within the tolerance: their error falls with the square of their number at best.
    """
    return math.inf > before <= _DROP * error and error / factor**2 <= tol


class _Path:
    """The straight path from the baseline to the value, and what was found along it."""

    def __init__(self, study: Subject, base: torch.Tensor, change: torch.Tensor) -> None:
        self._study = study
        self._base = base
        self._step = study.value - base
        self._change = change  # of the target, over the path
        self._per_run = 0
        self._parts = 0  # that the path was divided into evenly
        self._sum = torch.zeros(0)  # of the gradients between them
        self.values = torch.zeros_like(study.value)
        self.delta = torch.full((study.rows,), torch.inf, dtype=torch.float64)
        self.steps = torch.zeros(study.rows, dtype=torch.long)

    def by_gauss(self, rows: torch.Tensor, count: int, progress: bool | None) -> None:
        """Integrates over the path of some rows with so many points of Gauss and Legendre."""
        nodes, weights = np.polynomial.legendre.leggauss(count)
        shares = torch.tensor(weights / 2, dtype=torch.float64, device=self._step.device)
        mean = self._nothing()
        for run in self._gradients(rows, torch.tensor((nodes + 1) / 2), progress):
            weighted = run.grads.double() * _along(shares[run.variant], run.grads)
            mean.index_add_(0, run.which.to(mean.device), weighted)
        self._found(rows, mean[rows], count)

    def evenly(self, rows: torch.Tensor, parts: int, progress: bool | None) -> None:
        """Integrates with points between `parts` equal parts of the path, all that were before.

        Each point stands for one part, the first and the last for one and a half.
        """
        if not self._parts:
            self._sum = self._nothing()
        new = torch.arange(1, parts, 2 if self._parts else 1)
        self._parts = parts
        ends = self._nothing()
        for run in self._gradients(rows, new / parts, progress):
            grads, which = run.grads.double(), run.which.to(ends.device)
            self._sum.index_add_(0, which, grads)
            at_end = ((run.variant == 0) | (run.variant == len(new) - 1)).to(ends.device)
            ends.index_add_(0, which[at_end], grads[at_end])
        self._found(rows, (self._sum[rows] + ends[rows] / 2) / parts, parts - 1)

    def _gradients(
        self, rows: torch.Tensor, times: torch.Tensor, progress: bool | None
    ) -> Iterator[Gradients]:
        base, step, count = self._base, self._step, len(times)
        times = times.to(step.device, step.dtype)
        self._per_run = self._per_run or rows_per_run(self._study, count * len(rows))

        def at(which: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
            return base[which] + _along(times[node], step) * step[which]

        runs = runs_of(count * len(rows), self._per_run)
        with Bar(runs, 0, shown=progress, label=f"{count} steps", unit="gradients") as bar:
            yield from gradients_of_variants(self._study, rows, count, at, self._per_run, bar)

    def _found(self, rows: torch.Tensor, mean: torch.Tensor, count: int) -> None:
        found = mean * self._step[rows]
        self.delta[rows] = found.flatten(1).sum(1).cpu() - self._change[rows]
        self.values[rows] = found.to(self.values.dtype)
        self.steps[rows] = count

    def _nothing(self) -> torch.Tensor:
        return torch.zeros(self._step.shape, dtype=torch.float64, device=self._step.device)


def _along(numbers: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """One number for each row of values."""
    return numbers.view(-1, *[1] * (values.ndim - 1))


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
    notes: list[tuple[str, str]] = []
    without = int((~delta.isfinite()).sum())
    if without:
        note = (
            f"in {without} of {len(delta)} rows the target is NaN or infinite, for the input or "
            "for the baseline"
        )
        notes.append((note, "give another target, or leave these rows out"))
    above = 0 if tol is None else int((delta.isfinite() & (delta.abs() > tol)).sum())
    if above:
        note = f"{above} of {len(delta)} rows are above tol={tol:g} at {effort}"
        notes.append((note, f"raise {option}"))
    for note, advice in notes:
        warnings.warn(f"{name}: {note}; {advice}.", stacklevel=3)
    return tuple(note for note, _ in notes)
