"""`occlusion`: covers one window of the input at a time, and measures the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nethook.addresses.patterns import Pattern
from nethook.interp.attributions.baselines import baseline_of
from nethook.interp.attributions.subject import Subject, subject
from nethook.interp.attributions.targets import Given
from nethook.interp.attributions.windows import Size, Windows
from nethook.interp.results.attribution import Attribution
from nethook.interp.results.sweep import Sweep
from nethook.interp.sweeping.sweep import sweep


def occlusion(
    model: nn.Module,
    x: object,
    target: Given = None,
    at: Pattern | None = None,
    *,
    window: Size = None,
    stride: Size = None,
    baseline: Any = None,
    rows: int | None = None,
    to: str | Path | None = None,
    spread: bool = False,
    progress: bool | None = None,
) -> Attribution:
    """How much a target falls when one window of the input is covered.

        a = interp.occlusion(model, images, target=3, window=4, stride=2);  a.values, a.figure()
        interp.occlusion(model, ids, target=fn, at="bert.embeddings", baseline=pad_ids)

    Nothing is approximated, and nothing need add up: two windows that carry the same information
    may both seem to do nothing.

    Arguments:
        model, x, target, at: as in `interp.saliency`.
        window: how many places are covered at once: of pictures (height, width) or one number, of
            tokens, samples and features a number. None is one place, and of pictures at most 16 by
            16 windows.
        stride: how far windows are apart; None: they lie side by side. Where windows overlap, a
            place has the mean of those that cover it.
        baseline: what is put there; as in `interp.integrated_gradients`.
        rows, to, spread, progress: as in `interp.sweep`, which this is: how many windows share a
            run, a file to go on from, and whether the ranks of torchrun share the work.

    Returns:
        An `Attribution`: positive where covering lowers the target. Channels, and the width of
        tokens, are covered together: their dimension has the length one. Cost: a forward per
        window.
    """
    with subject(model, x, target, at) as study:
        base, words = baseline_of(study, baseline)
        windows = Windows(study.value.shape[1:], study.kind, window, stride)
        result = covered(
            study, at, base, windows.all(), rows=rows, to=to, spread=spread, progress=progress
        )
        effects = -result.effect[0]
        return study.result(
            "occlusion", windows.spread(effects), score=result.base, start=study.scores(
                base, torch.arange(study.rows)
            ), baseline=words, notes=result.notes,
        )  # fmt: skip


def covered(
    study: Subject, at: Pattern | None, base: torch.Tensor, indices: Sequence[tuple[Any, ...]],
    **options: Any,
) -> Sweep:  # fmt: skip
    """A sweep that puts the baseline at each of some indices in turn."""
    everything = torch.arange(study.rows)

    def put(value: torch.Tensor) -> torch.Tensor:
        return base.to(value)

    metric: Callable[[Any], torch.Tensor] = lambda out: study.target.of(  # noqa: E731
        out, everything, study.rows
    )
    result = sweep(
        study.model, study.inputs, at=at, over=list(indices), change=put, metric=metric, **options
    )
    study.runs += result.runs
    return result
