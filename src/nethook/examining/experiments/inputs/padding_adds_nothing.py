"""Padding adds nothing: with less of it behind short sequences their output stays as it is.

Experiment: in evaluation mode, the longer half of the sequences is replaced by copies of a short
one, and the steps that are padding for all of them then are cut off, in masks beside them as well.

Meaning: the last state of an RNN is that of the padding, an attention has no mask, or a mean is
taken over all positions: what is said of a sequence depends on the longest one of its batch.

Cost: one pass of the model.

Does not apply: where no input holds tokens that are padded at their ends, where another input has
as many steps and is no mask, where the model takes no shorter sequences, and where the output has a
place for each step. A question always: a model may have learnt to look past it.
"""

from __future__ import annotations

from typing import Final

import torch

from nethook.addresses.nested import tensors
from nethook.examining.experiment import Result, fine, not_applicable, question
from nethook.examining.probes.batch_axis import is_whole, tensors_of, with_tensors
from nethook.examining.probes.moved import change, comparable
from nethook.examining.probes.once import evaluated, once
from nethook.examining.probes.padded import padding_of
from nethook.examining.rehearsal import Rehearsal

LARGE: Final = 0.01
"""Change of an output, by its largest value, that is more than other sums in another order."""


class PaddingAddsNothing:
    """See the module."""

    name = "padding adds nothing"
    turn = 4

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if _padded(rehearsal) is None:
            return "no input holds sequences of tokens that are padded at their ends"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """The shorter half, without the steps that only the longer ones need."""
        found = _padded(rehearsal)
        assert found is not None
        share = float(found[0].float().mean())
        moved = moved_by_less(rehearsal)
        if isinstance(moved, str):
            return not_applicable(self, moved)
        if moved < LARGE:
            return fine(self, share=share)
        return question(self, "it may have learnt to look past it", share=share, moved=moved)


def moved_by_less(rehearsal: Rehearsal) -> float | str:
    """How far less padding moves the output, by its largest value; or why that is not known."""
    found = _padded(rehearsal)
    if found is None:
        return "no input holds sequences of tokens that are padded at their ends"
    pads, along = found
    lengths = (~pads).sum(along)
    short = lengths <= lengths.median()
    until = int(lengths[short].max())
    if pads.size(along) - until < max(2, pads.size(along) // 8):
        return "most sequences are as long as the longest"
    if any(_cannot_change(tensor, pads, along) for _, tensor in tensors_of(rehearsal.inputs)):
        return "another input has as many steps, and is no mask"
    places = torch.arange(len(short), device=short.device)
    rows = torch.where(short, places, places[short][0])
    shorter = with_tensors(
        rehearsal.inputs, lambda _, tensor: _shorter(tensor, pads, along, rows, until)
    )
    base = evaluated(rehearsal).output
    now = rehearsal.run(shorter, training=False, outputs_only=True).output
    moved = [
        change(mine, theirs)[short].flatten(1).amax(1)
        for (_, mine), (_, theirs) in zip(tensors(base), tensors(now), strict=False)
        if comparable(mine, theirs) and mine.dim() > 1 and len(mine) == len(rows)
    ]
    if not moved:
        return "the output has no row for each sequence"
    return max(float(one.median()) for one in moved)


def _padded(rehearsal: Rehearsal) -> tuple[torch.Tensor, int] | None:
    """Which positions of an input are padding at the end, and its dimension of steps."""

    def look() -> tuple[torch.Tensor, int] | None:
        for _, tensor in tensors_of(rehearsal.inputs):
            if tensor.layout is not torch.strided or tensor.is_nested or not is_whole(tensor):
                continue
            for along in (1, 0):
                rows = tensor if along == 1 or tensor.dim() != 2 else tensor.t()
                pads = padding_of(rows)
                if pads is not None and bool(pads[:, -1].any()):
                    return (pads if along == 1 else pads.t()), along
        return None

    return once(rehearsal, "padded at the end", look)


def _cannot_change(tensor: torch.Tensor, pads: torch.Tensor, along: int) -> bool:
    """Whether a tensor has as many steps, and is neither the tokens nor a mask."""
    if tensor.shape == pads.shape and tensor.layout is torch.strided:
        return len(tensor[pads].unique()) != 1
    return tensor.dim() > 1 and pads.size(along) in tensor.shape


def _shorter(
    tensor: torch.Tensor, pads: torch.Tensor, along: int, rows: torch.Tensor, until: int
) -> torch.Tensor:
    if tensor.shape == pads.shape:
        return tensor.index_select(1 - along, rows).narrow(along, 0, until)
    if tensor.dim() and len(tensor) == len(rows):
        return tensor.index_select(0, rows)
    return tensor
