"""The loss scores what differs: the targets that count are not all the same one.

Experiment: autograd says beside which targets the loss depends on the prediction. These are
compared with the targets that are left out.

Meaning: a mask of the loss that is the wrong way round: only padding counts, whose target is one
and the same, and what is to be learnt is left out.

Cost: one pass of model and loss with a graph, which others use as well, and a backward pass from
the loss to the prediction.

Does not apply: where all targets count, and where what is left out is one value alone: padding, or
the background.
"""

from __future__ import annotations

from typing import Final

import torch

from nethook.examining.experiment import Result, fine, found, not_applicable
from nethook.examining.probes.sequences import scored_rows
from nethook.examining.probes.source import line_of_loss
from nethook.examining.rehearsal import Rehearsal

FEWEST: Final = 8
"""Targets that must count, and that must be left out."""
SEVERAL: Final = 3
"""Different values among those that are left out."""


class LossScoresWhatDiffers:
    """See the module."""

    name = "the loss scores what differs"
    turn = 2

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if not rehearsal.replayable:
            return f"the loss could not be computed again: {rehearsal.why_not}"
        target = rehearsal.recorded.target
        if target is None or target.dim() < 2:
            return "no target is known that has several places for each sample"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Which targets count, and which do not."""
        target, call = rehearsal.recorded.target, rehearsal.recorded.main
        if target is None or call is None:
            return not_applicable(self, "no target is known")
        counts = scored_rows(rehearsal)
        target = target.detach().cpu()
        if counts.shape != target.shape or target.is_complex():
            return not_applicable(self, "prediction and target do not go together")
        ignored = call.options.get("ignore_index")
        known = torch.ones_like(counts) if ignored is None else target != ignored
        inside, outside = target[counts & known], target[~counts & known]
        if len(inside) < FEWEST or len(outside) < FEWEST:
            return not_applicable(self, "no part of the targets is left out")
        facts = {
            "share": float(counts.float().mean()),
            "values": len(inside.unique()),
            "left_out": len(outside.unique()),
        }
        if facts["values"] > 1 or facts["left_out"] < SEVERAL:
            return fine(self, **facts)
        lines = [line for line in (line_of_loss(rehearsal),) if line]
        return found(self, value=float(inside[0]), lines=lines, **facts)
