"""Targets are signs: a loss that takes -1 and 1 is not given 0 and 1.

Experiment: the targets of the losses that take signs are read, and those of a hinge that the script
has written itself.

Meaning: CosineEmbeddingLoss, HingeEmbeddingLoss, MarginRankingLoss and SoftMarginLoss take 1
and -1. With 0 in the place of -1 a pair that is to be pulled apart has no loss, or a constant one.

Cost: none.

Does not apply: where no such loss is called. What a hinge multiplies the output with may be a mask:
then the loss reads it once more, and nothing is said.
"""

from __future__ import annotations

from typing import Final

import torch

from nethook.examining.experiment import Result, fine, found, not_applicable
from nethook.examining.probes.hinges import Hinge, hinges_of
from nethook.examining.rehearsal import Rehearsal

BY_HAND_HINGE: Final = "a hinge, max(0, 1 - target * output)"
_OF_SIGNS: Final = frozenset(
    {"cosine_embedding", "hinge_embedding", "margin_ranking", "soft_margin"}
)


class TargetsAreSigns:
    """See the module."""

    name = "targets are signs"
    turn = 2

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if any(call.kind in _OF_SIGNS for call in rehearsal.recorded.calls):
            return None
        return None if _hinges(rehearsal) else "no loss takes signs"

    def run(self, rehearsal: Rehearsal) -> Result:
        """The values of each target."""
        for call in rehearsal.recorded.calls:
            if call.kind not in _OF_SIGNS or call.target is None or not call.target.numel():
                continue
            if (share := _zeros(call.target)) is not None:
                return found(
                    self, kind=call.kind, share=share, lines=[call.line] if call.line else []
                )
        hinges = _hinges(rehearsal)
        for hinge in hinges:
            share = _zeros(hinge.target)
            if share is not None and share < 1:
                return found(self, kind=BY_HAND_HINGE, share=share, lines=[hinge.line])
        known = hinges or any(call.target is not None for call in rehearsal.recorded.calls)
        return fine(self) if known else not_applicable(self, "the targets are not known")


def _zeros(target: torch.Tensor) -> float | None:
    """The share of zeros among zeros and ones; None where there are other values, or no zero."""
    values = target.unique()
    binary = 0 < len(values) <= 2 and bool(((values == 0) | (values == 1)).all())
    if not binary or not bool((values == 0).any()):
        return None
    return float((target == 0).double().mean())


def _hinges(rehearsal: Rehearsal) -> list[Hinge]:
    passage = rehearsal.passage
    return [] if passage is None or passage.problem else hinges_of(passage)
