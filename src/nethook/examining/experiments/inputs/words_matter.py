"""The words matter, and not the padding alone: with other tokens the output of a sequence moves.

Experiment: in evaluation mode, the tokens of every sequence that is padded are replaced by others
of the batch, and its padding stays; where its output does not move, the padding is replaced
instead, and then the words once more with other weights.

Meaning: a mask is the wrong way round, so that only padding is attended to; or the output is read
at the last position, where a short sequence has nothing but padding behind it.

Cost: one pass of the model, and up to three more where the output does not move.

Does not apply: where no input holds tokens of two dimensions that are padded, and where the output
has no row for each sequence. Where neither moves the output, `input_matters` has its say; where
other weights let words through, it is a question.
"""

from __future__ import annotations

import torch

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import tensors
from nethook.examining.experiment import Result, fine, found, not_applicable, question
from nethook.examining.probes.batch_axis import is_whole, tensors_of, with_tensors
from nethook.examining.probes.fresh_weights import draw_weights
from nethook.examining.probes.moved import change, comparable
from nethook.examining.probes.once import evaluated, once
from nethook.examining.probes.padded import padding_of
from nethook.examining.rehearsal import Rehearsal


class WordsMatter:
    """See the module."""

    name = "the words matter"
    turn = 3

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if not padded(rehearsal):
            return "no input holds padded sequences of tokens"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Other words first, then another padding."""
        number, pads = padded(rehearsal)[0]
        rows = pads.any(1)
        base = evaluated(rehearsal).output
        moved = moved_by(rehearsal, base, (number, ~pads), rows)
        if moved is None:
            return not_applicable(self, "the output has no row for each sequence")
        if moved or not moved_by(rehearsal, base, (number, pads), rows):
            return fine(self)
        facts = {"sequences": int(rows.sum()), "share": float(pads.float().mean())}
        other = rehearsal.twin()
        draw_weights(other.model)
        again = other.run(training=False, outputs_only=True).output
        if moved_by(other, again, (number, ~pads), rows):
            return question(self, "with other weights they matter", **facts)
        return found(self, **facts)


def padded(rehearsal: Rehearsal) -> list[tuple[int, torch.Tensor]]:
    """Each input with padding: its number, and which positions are padding."""

    def look() -> list[tuple[int, torch.Tensor]]:
        given = enumerate(tensors_of(rehearsal.inputs))
        whole = [
            (number, tensor)
            for number, (_, tensor) in given
            if is_whole(tensor) and tensor.layout is torch.strided and not tensor.is_nested
        ]
        found = [(number, padding_of(tensor)) for number, tensor in whole]
        return [(number, pads) for number, pads in found if pads is not None]

    return once(rehearsal, "padded", look)


def moved_by(
    rehearsal: Rehearsal,
    base: object,
    changed: Inputs | tuple[int, torch.Tensor],
    rows: torch.Tensor,
    seen: torch.Tensor | None = None,
) -> bool | None:
    """Whether the outputs of some rows move; None where there is none for each.

    Arguments:
        rehearsal: of a step.
        base: what the model returned.
        changed: other inputs; or the number of an input, and where other tokens go.
        rows: that are looked at.
        seen: of an output with a place for each step, the places that are looked at.
    """
    if isinstance(changed, tuple):
        number, where = changed
        changed = _with_others(rehearsal.inputs, number, where & rows[:, None])
    now = rehearsal.run(changed, training=False, outputs_only=True).output
    pairs = [
        (mine, theirs)
        for (_, mine), (_, theirs) in zip(tensors(base), tensors(now), strict=False)
        if comparable(mine, theirs) and mine.dim() and len(mine) == len(rows)
    ]
    if not pairs:
        return None
    return any(bool((_at(change(mine, theirs), seen)[rows] > 0).any()) for mine, theirs in pairs)


def _at(moved: torch.Tensor, seen: torch.Tensor | None) -> torch.Tensor:
    """What has moved at some places, where there are such; everything else."""
    if seen is None or seen.size(1) not in moved.shape[1:]:
        return moved
    steps = tuple(moved.shape).index(seen.size(1), 1)
    places = seen.to(moved.device).reshape(
        len(seen), *(seen.size(1) if dim == steps else 1 for dim in range(1, moved.dim()))
    )
    return torch.where(places, moved, 0.0)


def _with_others(inputs: Inputs, number: int, where: torch.Tensor) -> Inputs:
    """Tokens at some positions replaced by words of the batch, which the model knows."""
    source = torch.Generator().manual_seed(1)

    def replace(at: int, tensor: torch.Tensor) -> torch.Tensor:
        if at != number:
            return tensor
        pads = padding_of(tensor)
        words = tensor[~pads] if pads is not None else tensor.flatten()
        drawn = torch.randint(len(words), tensor.shape, generator=source).to(tensor.device)
        return torch.where(where, words[drawn], tensor)

    return with_tensors(inputs, replace)
