"""The mask matters: a mask of padding that the model is given changes what it returns.

Experiment: in evaluation mode, the mask is replaced by one that leaves nothing out; where the
output does not move, the padding is replaced by words of the batch, and then there is less of it.

Meaning: the forward takes a mask and never uses it, so that padding counts like words: a mean over
all positions of a sequence.

Cost: one pass of the model, and two more where the output does not move.

Does not apply: where no input holds padded sequences of tokens, where no other input says which
positions are padding, and where the output has no row for each sequence. Where padding has no
effect on what is said of words, or where less of it changes nothing, the model finds it by itself,
and nothing is wrong. A question: where sequences cannot be made shorter, as of a layer with a
weight for each position, which may learn what padding is.
"""

from __future__ import annotations

import torch

from nethook.addresses.inputs import Inputs
from nethook.examining.experiment import (
    NotReplayableError,
    OutOfTimeError,
    Result,
    fine,
    found,
    not_applicable,
    question,
)
from nethook.examining.experiments.inputs.padding_adds_nothing import LARGE, moved_by_less
from nethook.examining.experiments.inputs.words_matter import moved_by, padded
from nethook.examining.probes.batch_axis import tensors_of, with_tensors
from nethook.examining.probes.once import evaluated
from nethook.examining.rehearsal import Rehearsal


class MaskMatters:
    """See the module."""

    name = "the mask matters"
    turn = 3

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if not padded(rehearsal):
            return "no input holds padded sequences of tokens"
        if _mask_of(rehearsal, padded(rehearsal)[0][1]) is None:
            return "no input says which tokens are padding"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Without the mask first, then with another padding."""
        number, pads = padded(rehearsal)[0]
        mask = _mask_of(rehearsal, pads)
        assert mask is not None
        base, rows = evaluated(rehearsal).output, pads.any(1)
        moved = moved_by(rehearsal, base, _without(rehearsal.inputs, *mask), rows)
        if moved is None:
            return not_applicable(self, "the output has no row for each sequence")
        if moved or not moved_by(rehearsal, base, (number, pads), rows, seen=~pads):
            return fine(self)
        facts = {"sequences": int(rows.sum()), "share": float(pads.float().mean())}
        less = _moved_by_less(rehearsal)
        if less is None:
            return question(self, "it may have learnt what padding is, place by place", **facts)
        return found(self, **facts) if less >= LARGE else fine(self)


def _moved_by_less(rehearsal: Rehearsal) -> float | None:
    """How far less padding moves the output; None where that is not known."""
    try:
        moved = moved_by_less(rehearsal)
    except OutOfTimeError:
        raise
    except NotReplayableError:
        return None
    return None if isinstance(moved, str) else moved


def _mask_of(rehearsal: Rehearsal, pads: torch.Tensor) -> tuple[int, bool] | None:
    """The number of the input that is a mask, and whether it marks words rather than padding."""
    for number, (_, tensor) in enumerate(tensors_of(rehearsal.inputs)):
        if tensor.shape != pads.shape or tensor.layout is not torch.strided or tensor.is_nested:
            continue
        for marks_words in (True, False):
            if torch.equal(tensor.to(torch.float64), (pads ^ marks_words).to(torch.float64)):
                return number, marks_words
    return None


def _without(inputs: Inputs, number: int, marks_words: bool) -> Inputs:
    """The same inputs, with a mask that leaves nothing out."""

    def replace(at: int, tensor: torch.Tensor) -> torch.Tensor:
        return torch.full_like(tensor, int(marks_words)) if at == number else tensor

    return with_tensors(inputs, replace)
