"""The order matters: with the steps of every sequence in another order something else comes out.

Experiment: in evaluation mode, the steps of all sequences of an input are turned round; where the
output stays, they are shuffled: distances may count, and not directions.

Meaning: an attention without positions takes a sentence for a bag of words; `mean` or `sum` comes
before what was to read the order.

Cost: one pass of the model, and another where the output does not move.

Does not apply: where no input has samples of at least four steps each, where another input has as
many steps, and where the output has a place for each step. A question always: the order may not
matter for a set, or for a bag of words.
"""

from __future__ import annotations

from typing import Final

import torch

from nethook.addresses.nested import tensors
from nethook.examining.experiment import Result, fine, not_applicable, question
from nethook.examining.probes.batch_axis import is_whole, tensors_of, with_tensors
from nethook.examining.probes.moved import change, comparable
from nethook.examining.probes.once import evaluated
from nethook.examining.rehearsal import Rehearsal

STEPS: Final = 4
SAME: Final = 1e-4
"""Change of an output, by its largest value, that adding up in another order may make."""


class OrderMatters:
    """See the module."""

    name = "the order matters"
    turn = 4

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if _sequences(rehearsal) is None:
            return "no input holds one sequence of tokens or numbers for each sample"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """The last step first, and then any order."""
        given = _sequences(rehearsal)
        assert given is not None
        rows, steps = given.shape[:2]
        shuffled = torch.randperm(steps, generator=torch.Generator().manual_seed(1))
        for order in (torch.arange(steps).flip(0), shuffled):
            moved = _moved(rehearsal, given, order.to(given.device))
            if moved is None:
                return not_applicable(self, "the output has no row for each sequence")
            if moved > SAME:
                return fine(self)
        return question(self, "it may be a set or a bag of words", steps=steps, rows=rows)


def _moved(rehearsal: Rehearsal, given: torch.Tensor, order: torch.Tensor) -> float | None:
    """How far the output moves with the steps in another order; None: it has no row for each."""
    rows, steps = given.shape[:2]
    other = with_tensors(
        rehearsal.inputs,
        lambda _, one: one.index_select(1, order) if one.shape[:2] == given.shape[:2] else one,
    )
    base = evaluated(rehearsal).output
    now = rehearsal.run(other, training=False, outputs_only=True).output
    moved = [
        float(change(mine, theirs).amax())
        for (_, mine), (_, theirs) in zip(tensors(base), tensors(now), strict=False)
        if comparable(mine, theirs) and mine.dim() > 1
        if len(mine) == rows and steps not in mine.shape[1:]
    ]
    return max(moved, default=None)


def _sequences(rehearsal: Rehearsal) -> torch.Tensor | None:
    """The only input with steps: (samples, steps) of tokens, or with features."""
    found = [
        tensor
        for _, tensor in tensors_of(rehearsal.inputs)
        if tensor.layout is torch.strided and not tensor.is_nested and tensor.dim() > 1
    ]
    wide = [tensor for tensor in found if tensor.dim() == (2 if is_whole(tensor) else 3)]
    if not wide or len(found) > 2:
        return None
    first = wide[0]
    if min(first.shape[:2]) < STEPS or torch.equal(first, first.flip(1)):
        return None
    return first if all(one.shape[:2] == first.shape[:2] for one in found) else None
