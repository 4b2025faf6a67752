"""`smooth_grad` and `gradient_shap`: means of gradients at places drawn around the input."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from nethook.addresses.patterns import Pattern
from nethook.errors import OptionError
from nethook.extracting.progress import Bar
from nethook.interp.attributions.baselines import several_baselines
from nethook.interp.attributions.batches import (
    Shared,
    ValueOf,
    gradients_of_variants,
    rows_per_run,
    runs_of,
)
from nethook.interp.attributions.subject import Subject, subject
from nethook.interp.attributions.targets import Given
from nethook.interp.results.attribution import Attribution


def smooth_grad(
    model: nn.Module, x: object, target: Given = None, at: Pattern | None = None, *,
    noise: float = 0.15, samples: int = 32, seed: int = 0, spread: bool = False,
    progress: bool | None = None,
) -> Attribution:  # fmt: skip
    """The mean gradient over copies of the input with noise: less ragged than one gradient.

        a = interp.smooth_grad(model, images, target=3);  a.values, a.errors

    Arguments:
        model, x, target, at, progress: as in `interp.saliency`.
        noise: the standard deviation of the noise, as a fraction of the range of each row.
        samples: how many copies. All rows get the same noise, so a row does not depend on its
            batch.
        seed: of the noise.
        spread: as in `interp.integrated_gradients`.

    Returns:
        An `Attribution` with standard errors. Cost: `samples` gradients per row.
    """
    _check_samples(samples)
    if isinstance(noise, bool) or not noise >= 0:
        raise OptionError(f"`noise` must be zero or a positive fraction; got {noise!r}.")
    with subject(model, x, target, at) as study:
        shared, value = Shared(study, spread=spread), study.value
        flat = value.flatten(1) if value.ndim > 1 else value[:, None]
        deviation = noise * (flat.amax(1) - flat.amin(1)).view(-1, *[1] * (value.ndim - 1))
        drawn = _Drawn(value[:1].shape, seed, value)

        def noisy(which: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
            return value[which] + deviation[which] * drawn.of(sample)

        mean, errors = _mean_gradient(study, noisy, samples, None, shared, progress)
        return study.result("SmoothGrad", mean, errors=errors)


def gradient_shap(
    model: nn.Module, x: object, target: Given = None, at: Pattern | None = None, *,
    baseline: Any, samples: int = 64, seed: int = 0, spread: bool = False,
    progress: bool | None = None,
) -> Attribution:  # fmt: skip
    """Expected gradients: integrated gradients averaged over many baselines, by sampling.

        a = interp.gradient_shap(model, x, target=1, baseline=background);  a.values, a.errors

    Arguments:
        model, x, target, at, progress: as in `interp.saliency`.
        baseline: rows of data to draw baselines from, (rows, …); at a site also token ids.
        samples: how many pairs of a baseline and a place on the path to it are drawn. Places are
            spread evenly over the path; all rows use the same pairs.
        seed: of what is drawn.
        spread: as in `interp.integrated_gradients`.

    Returns:
        An `Attribution` with standard errors and `delta`, of which `start` is the mean over the
        baselines that were drawn. Cost: `samples` gradients per row.
    """
    _check_samples(samples)
    with subject(model, x, target, at) as study:
        background = several_baselines(study, baseline)
        generator = torch.Generator().manual_seed(seed)
        chosen = _evenly(len(background), samples, generator)
        places = torch.randperm(samples, generator=generator) + torch.rand(
            samples, generator=generator
        )
        shared, value = Shared(study, spread=spread), study.value
        times = (places / samples).to(value)
        aside = [1] * (value.ndim - 1)

        def between(which: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
            base = background[chosen[sample]]
            return base + times[sample].view(-1, *aside) * (value[which] - base)

        def step(which: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
            return value[which] - background[chosen[sample]]

        mean, errors = _mean_gradient(study, between, samples, step, shared, progress)
        score = study.score
        start = _mean_score(study, background, chosen)
        delta = mean.flatten(1).sum(1).cpu() - (score.double().cpu() - start)
        words = f"drawn from {len(background)} rows"
        return study.result(
            "GradientSHAP", mean, errors=errors, score=score, start=start, delta=delta,
            baseline=words,
        )  # fmt: skip


class _Drawn:
    """Noise by number: the same for every row, however rows are batched."""

    def __init__(self, shape: torch.Size, seed: int, like: torch.Tensor) -> None:
        self._shape = shape
        self._seed = seed
        self._like = like
        self._known: dict[int, torch.Tensor] = {}

    def of(self, numbers: torch.Tensor) -> torch.Tensor:
        """The noise of some samples, one after the other."""
        wanted = numbers.tolist()
        self._known = {number: known for number, known in self._known.items() if number in wanted}
        for number in wanted:
            if number not in self._known:
                generator = torch.Generator().manual_seed(self._seed * 1_000_003 + number)
                noise = torch.randn(self._shape, generator=generator, dtype=torch.float64)
                self._known[number] = noise.to(self._like)
        return torch.cat([self._known[number] for number in wanted])


def _mean_gradient(
    study: Subject, value: ValueOf, samples: int, times: ValueOf | None, shared: Shared,
    progress: bool | None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """The mean over samples of gradients, or of gradients times a step; and its standard error."""
    total = torch.zeros(study.value.shape, dtype=torch.float64, device=study.value.device)
    squares = torch.zeros_like(total)
    rows = shared.rows
    per_run = rows_per_run(study, samples * len(rows))
    runs = runs_of(samples * len(rows), per_run)
    with Bar(runs, 0, shown=progress, label="sampling", unit="gradients") as bar:
        for run in gradients_of_variants(study, rows, samples, value, per_run, bar):
            grads = run.grads.double()
            if times is not None:
                grads = grads * times(run.which, run.variant)
            which = run.which.to(total.device)
            total.index_add_(0, which, grads)
            squares.index_add_(0, which, grads.square())
    total, squares = shared.whole(total), shared.whole(squares)
    mean = total / samples
    spread = (squares / samples - mean.square()).clamp(min=0) / max(samples - 1, 1)
    return mean, spread.sqrt() if samples > 1 else torch.full_like(mean, torch.nan)


def _mean_score(study: Subject, background: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """The target for the baselines that were drawn, as the mean over draws; per row."""
    total = torch.zeros(study.rows, dtype=torch.float64)
    rows = torch.arange(study.rows)
    for number, times in zip(*chosen.unique(return_counts=True), strict=True):
        base = background[number].expand_as(study.value)
        total += int(times) * study.scores(base, rows).double().cpu()
    return total / len(chosen)


def _evenly(count: int, samples: int, generator: torch.Generator) -> torch.Tensor:
    """So many numbers below `count`: each as often as the others, or once more."""
    rounds = [torch.randperm(count, generator=generator) for _ in range(-(-samples // count))]
    return torch.cat(rounds)[:samples]


def _check_samples(samples: int) -> None:
    if type(samples) is not int or samples < 1:
        raise OptionError(f"`samples` must be a positive number; got {samples!r}.")
