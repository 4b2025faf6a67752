"""Predictions line up with targets: what is computed from a sample is compared with its target.

Experiment, in two parts. A sample is replaced by another one: the rows of the prediction that move
must stand beside targets of one and the same sample. And for a few rows, autograd says which places
of the model's output they are made of: the row beside the target of position t must be made of
position t (or of t + s, with one s for all). Before both, copies of samples in the batch are looked
for: their targets must lie as the copies do.

Meaning: `view` or `reshape` where `transpose` or `permute` was meant, in the model or after it.

Cost: the passes of `samples_independent`, which are run once for both, one with a graph, and a
small backward pass from the loss to the output per row.

Does not apply: where the layout of the target is not known (it was computed and not only laid out),
where the operations after the model mix samples, or the model itself does. Targets in another order
of whole samples are left alone: sequences may have been sorted by length.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from nethook.addresses.nested import tensors
from nethook.examining.experiment import NotReplayableError, Result, fine, found, not_applicable
from nethook.examining.experiments.network.samples_independent import WEAK, mixing
from nethook.examining.probes.batch_axis import BatchAxis, tensors_of
from nethook.examining.probes.copies_of_samples import laid_otherwise
from nethook.examining.probes.graph import gradients
from nethook.examining.probes.once import with_graph
from nethook.examining.probes.origins import Places, places_of, prediction_row, rows_that
from nethook.examining.probes.rows import sample_axes
from nethook.examining.probes.source import line_of_loss, lines_of_layout
from nethook.examining.rehearsal import Rehearsal

SHIFTS: Final = range(-2, 3)
"""Positions by which a prediction may stand before or after its target: as in language models."""
FEWEST_POSITIONS: Final = 6


class RowsMeetTargets:
    """See the module."""

    name = "predictions line up with targets"
    turn = 1

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if not rehearsal.replayable:
            return f"the loss could not be computed again: {rehearsal.why_not}"
        call = rehearsal.recorded.main
        if call is None or call.prediction is None or call.target is None:
            return "no target is known that predictions are compared with"
        if call.target.numel() < 2:
            return "there is one target only"
        if rows_that(torch.zeros(call.prediction.shape, dtype=torch.bool), call) is None:
            return "prediction and target do not go together element by element"
        if places_of(rehearsal) is None:
            return "the layout of the target is not known"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """First by position, which needs no further pass of the model; then by sample."""
        places = places_of(rehearsal)
        if places is None:
            return not_applicable(self, "the layout of the target is not known")
        known = (*lines_of_layout(rehearsal), line_of_loss(rehearsal))
        lines = list(dict.fromkeys(line for line in known if line))
        given = [tensor for _, tensor in tensors_of(rehearsal.inputs)]
        target = rehearsal.recorded.target
        otherwise = None if target is None else laid_otherwise(given, target)
        if otherwise is not None:
            return found(self, lines=lines, **otherwise)
        wrong, tried = _by_position(rehearsal, places)
        if wrong is not None:
            return found(self, lines=lines, **wrong)
        for axis in sample_axes(rehearsal):
            told = _by_sample(rehearsal, axis, places)
            if told is None:
                continue
            if told.pop("aligned"):
                return fine(self, **told)
            return found(self, lines=lines, **told)
        if tried:
            return fine(self, positions=tried)
        return not_applicable(self, "samples depend on each other, or targets have none of them")


def _by_sample(rehearsal: Rehearsal, axis: BatchAxis, places: Places) -> dict[str, Any] | None:
    """Whether rows that move with a sample stand beside targets of one sample; None: no answer."""
    dims = [dim for dim, size in enumerate(places.shape) if size == axis.size]
    if not dims:
        return None
    mixed = mixing(rehearsal, axis)
    if mixed is None or mixed.others > WEAK:
        return None
    tried = 0
    scattered: dict[str, Any] | None = None
    for sample, rows in mixed.rows.items():
        if not bool(rows.any()):
            continue
        if float(rows.float().mean()) > 0.5:
            return None  # the operations after the model mix samples, on purpose or not
        tried += 1
        rows = rows.cpu()
        beside = min((places.along(dim)[rows].unique().tolist() for dim in dims), key=len)
        if len(beside) > 1:
            scattered = {"sample": sample, "beside": beside[:8], "samples_beside": len(beside)}
    if not tried:
        return None
    return {"aligned": scattered is None, "samples": axis.size, "tried": tried, **(scattered or {})}


def _by_position(rehearsal: Rehearsal, places: Places) -> tuple[dict[str, Any] | None, int]:
    """Rows that are made of other positions of the output than their target's, and rows tried."""
    ran = with_graph(rehearsal)
    call, prediction = ran.main, ran.prediction
    if call is None or prediction is None or not prediction.requires_grad or call.inside_model:
        return None, 0
    for _, output in tensors(ran.output):
        dims = _same_dims(places.shape, tuple(output.shape))
        if dims is None or not output.requires_grad:
            continue
        for dim in range(1, len(places.shape)):
            if places.shape[dim] < FEWEST_POSITIONS:
                continue
            sources = _sources(prediction, call, output, places, dim, dims[dim])
            if len(sources) >= 4 and not any(
                all(position + shift in made for position, made in sources.items())
                for shift in SHIFTS
            ):
                position = next(
                    (at for at, made in sources.items() if at not in made), next(iter(sources))
                )
                return {
                    "positions": places.shape[dim],
                    "position": position,
                    "made_of": sorted(sources[position])[:8],
                }, len(sources)
            if len(sources) >= 4:
                return None, len(sources)
    return None, 0


def _sources(
    prediction: torch.Tensor,
    call: Any,
    output: torch.Tensor,
    places: Places,
    dim: int,
    choices: tuple[int, ...],
) -> dict[int, set[int]]:
    """Position of a target -> the positions of the output that the row beside it is made of."""
    size = places.shape[dim]
    numbers = places.numbers.reshape(-1)
    along = places.along(dim).reshape(-1)
    sample = places.along(0).reshape(-1)
    middle = places.shape[0] // 2
    sources: dict[int, set[int]] = {}
    for position in sorted({0, 1, size // 5, size // 3, size // 2, 2 * size // 3, size - 2}):
        here = ((along == position) & (sample == middle)).nonzero().reshape(-1)
        if not len(here) or not len(numbers):
            continue
        with torch.enable_grad():
            row = prediction_row(prediction, call, int(here[0]))
            if row is None:
                raise NotReplayableError("prediction and target do not go together")
            spread = torch.linspace(0.5, 1.5, row.numel(), device=row.device, dtype=row.dtype)
            weighted = (row * spread.reshape(row.shape)).sum()
        (gradient,) = gradients(weighted, output)
        if gradient is None:
            continue
        made: set[int] = set()
        for choice in choices:
            others = [other for other in range(output.dim()) if other != choice]
            # A row is made of what it follows: rounding and far tails are left out.
            share = gradient.abs().sum(others) if others else gradient.abs()
            made |= set((share > 1e-4 * share.max()).nonzero().reshape(-1).tolist())
        if made:
            sources[position] = made
    return sources


def _same_dims(target: tuple[int, ...], output: tuple[int, ...]) -> list[tuple[int, ...]] | None:
    """Dimensions of the target -> those of the output that they may be; None where unclear."""
    if len(output) not in (len(target), len(target) + 1) or len(target) < 2:
        return None
    left = list(output)
    for size in target:
        if size not in left:
            return None
        left.remove(size)
    if left and left[0] in target:
        return None  # as many classes as positions, or as samples: either may be which
    return [tuple(dim for dim, length in enumerate(output) if length == size) for size in target]
