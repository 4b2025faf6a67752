"""Samples are independent: what a model says of one does not depend on the others in its batch.

Experiment: in evaluation mode, a sample is replaced by another one, and the elements of the output
that move are its own. Then all others are replaced by one real sample, and it stays. Its own
elements must not move now. The first, a middle and the last sample are tried.

Meaning: `view` where `permute` was meant, `batch_first` forgotten, a softmax over dimension 0.

Cost: seven passes of the model.

Does not apply: where rows are no samples (`rows`), and where batch norm has no statistics of its
own in evaluation. A set of fixed size looks exactly like the bug: where nothing shows that rows are
samples, the result is a question. Dependence that exists in training only (batch norm, mixup) is
never seen: the experiment runs in evaluation mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.examining.experiment import (
    NotReplayableError,
    Result,
    fine,
    found,
    not_applicable,
    question,
)
from nethook.examining.probes.batch_axis import BatchAxis, first_middle_last
from nethook.examining.probes.graph import softmax_over_first, uses_batch_statistics
from nethook.examining.probes.moved import change, comparable
from nethook.examining.probes.once import evaluated, once
from nethook.examining.probes.origins import rows_that
from nethook.examining.probes.rows import sample_axes, shown_by, why_not_samples
from nethook.examining.probes.smooth import follows_several, has_samples
from nethook.examining.probes.source import line_of_class
from nethook.examining.rehearsal import Ran, Rehearsal

WEAK: Final = 1e-3
"""Others that move a sample by less than this share of what itself does are no finding."""


class SamplesIndependent:
    """See the module."""

    name = "samples are independent"
    turn = 1

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if _batch_statistics(rehearsal.model):
            return "batch norm uses the statistics of the batch in evaluation, too"
        return why_not_samples(rehearsal) or None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Tries the likeliest dimension of samples, and another where that would explain it."""
        axes = sample_axes(rehearsal)
        mixed = mixing(rehearsal, axes[0])
        if mixed is None:
            return not_applicable(self, "all samples are the same, or the output has none of them")
        if mixed.others <= WEAK:
            return fine(self, samples=axes[0].size, **_numbers(mixed))
        facts: dict[str, Any] = {
            "samples": axes[0].size,
            "smooth": mixed.smooth,
            "lines": [line for line in (line_of_class(rehearsal.model),) if line],
            **_numbers(mixed),
        }
        made = _graph_of(rehearsal)
        if uses_batch_statistics(*made):
            return not_applicable(
                self, "batch norm uses the statistics of the batch in evaluation, too", **facts
            )
        if softmax_over_first(*made):
            facts["operation"] = "a softmax over dimension 0"
        if not mixed.smooth:
            return question(
                self, "rows depend on each other by a choice (as with experts of limited room), "
                "which may be meant", **facts,
            )  # fmt: skip
        shown = shown_by(rehearsal, axes[0])
        if shown:
            return found(self, shown=shown, **facts)
        if len(axes) > 1:
            other = mixing(rehearsal, axes[1])
            if other is not None and other.others <= WEAK:
                # As it should be, where the first dimension is time.
                return fine(self, samples=axes[1].size, **_numbers(other))
        return question(
            self, "rows may be parts of one thing (a set, a list) that are meant to know of each "
            "other; nothing shows that they are samples", **facts,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Mixing:
    """What samples do to each other.

    Attributes:
        others: how far others move a sample, by how far itself does, at most.
        sample: the one that they move most, and `by`, which took the others' place.
        smooth: whether others have an effect however little they change (`smooth`).
        rows: sample -> the places of the target whose prediction moves with it alone.
    """

    others: float
    sample: int
    by: int
    smooth: bool
    rows: Mapping[int, torch.Tensor]


def mixing(rehearsal: Rehearsal, axis: BatchAxis) -> Mixing | None:
    """What the samples along a dimension do to each other; None where nothing can be said."""
    return once(rehearsal, f"mixing {sorted(axis.dims.items())}", lambda: _mixing(rehearsal, axis))


def _mixing(rehearsal: Rehearsal, axis: BatchAxis) -> Mixing | None:
    inputs, ran = rehearsal.inputs, evaluated(rehearsal)
    base = _with_samples(ran, axis)
    if not base:
        return None
    worst: tuple[float, int, int] | None = None
    where = 0, 0
    rows: dict[int, torch.Tensor] = {}
    for sample in first_middle_last(axis.size):
        by = axis.another(inputs, sample)
        if by is None:
            continue
        changed = rehearsal.run(
            axis.swapped(inputs, change=sample, by=by), training=False,
            outputs_only=not rehearsal.replayable,
        )  # fmt: skip
        moved = _rows(ran, changed)
        if moved is not None:
            rows[sample] = moved
        own = _changes(base, _with_samples(changed, axis))
        others = _changes(base, _outputs(rehearsal, axis.only(inputs, keep=sample, by=by), axis))
        for number, (mine, theirs) in enumerate(zip(own, others, strict=True)):
            if mine is None or theirs is None or not (mine > 0).any():
                continue
            both = torch.where(mine > 0, theirs, 0.0)
            ratio = float(both.max() / mine.max())
            if worst is None or ratio > worst[0]:
                worst, where = (ratio, sample, by), (number, int(both.argmax()))
    if worst is None:
        return None
    smooth = worst[0] <= WEAK or follows_several(rehearsal, axis, *where)
    return Mixing(*worst, smooth, rows)


def _rows(before: Ran, after: Ran) -> torch.Tensor | None:
    one, other = before.prediction, after.prediction
    if one is None or other is None or before.main is None or not comparable(one, other):
        return None
    return rows_that(change(one, other) > 0, before.main)


def _with_samples(ran: Ran, axis: BatchAxis) -> list[torch.Tensor]:
    return [tensor for _, tensor in tensors(ran.output) if has_samples(tensor, axis.size)]


def _outputs(rehearsal: Rehearsal, inputs: Any, axis: BatchAxis) -> list[torch.Tensor]:
    return _with_samples(rehearsal.run(inputs, training=False, outputs_only=True), axis)


def _changes(base: list[torch.Tensor], now: list[torch.Tensor]) -> list[torch.Tensor | None]:
    if len(base) != len(now):
        raise NotReplayableError("the model returns another number of tensors on changed samples")
    return [
        change(one, other) if comparable(one, other) else None
        for one, other in zip(base, now, strict=True)
    ]


def _batch_statistics(model: nn.Module) -> bool:
    return any(
        isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm)
        and module.running_mean is None
        for module in model.modules()
    )


def _graph_of(rehearsal: Rehearsal) -> list[torch.Tensor]:
    ran = rehearsal.run(training=False, grad=True, outputs_only=True)
    return [tensor for _, tensor in tensors(ran.output)]


def _numbers(mixed: Mixing) -> dict[str, Any]:
    return {"others": mixed.others, "sample": mixed.sample}
