"""What the target is: the input itself, or a part of it, or what follows by more than one step.

Experiment: targets are compared with inputs at shifts of -2 to 3 steps; where they agree, single
things are changed to see how far each prediction looks. One step beyond the last thing that is seen
is a language model. Where single positions are scored among others, as of a masked language model,
none of them may see itself. At that very thing, a model that looks back only is to copy its input;
two steps beyond it, the sequence was shifted twice. A target of one number may stand in its own
input.

Meaning: labels shifted by the collator and by the model, labels not shifted at all, a window that
ends one step too late, a column of the table that is the answer.

Cost: up to seven passes of model and loss where target and input agree; none elsewhere.

Does not apply: where the target is no part of the inputs. Models that see both ways and write their
input again are autoencoders, and fine. Echoes of earlier steps may be the task, and are a question.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from nethook.addresses.paths import show_path
from nethook.examining.experiment import Result, fine, found, not_applicable, question
from nethook.examining.probes.batch_axis import is_whole, tensors_of
from nethook.examining.probes.sequences import Followed, aligned_inputs, followed
from nethook.examining.probes.source import line_of_loss
from nethook.examining.rehearsal import Rehearsal

FEWEST: Final = 8
"""Samples whose target must stand in their input."""


class WhatTheTargetIs:
    """See the module."""

    name = "what the target is"
    turn = 0

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if rehearsal.recorded.target is None:
            return "no target is known"
        if not aligned_inputs(rehearsal) and _column(rehearsal) is None:
            return "the target is no part of the inputs"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Sequences first, then single targets."""
        lines = [line for line in (line_of_loss(rehearsal),) if line]
        column = _column(rehearsal)
        if column is not None:
            certain = column.pop("certain")
            if certain:
                return found(self, what="input", lines=lines, **column)
            return question(
                self, "the task may be to remember it", what="input", lines=lines, **column
            )
        if not rehearsal.replayable:
            return not_applicable(self, f"the loss could not be computed: {rehearsal.why_not}")
        told = followed(rehearsal)
        if not told:
            return not_applicable(self, "no prediction moves with the inputs that the target is")
        return self._of(told, lines)

    def _of(self, told: list[Followed], lines: list[str]) -> Result:
        facts: dict[str, Any] = {
            "shift": told[0].shift_of_output,
            "ahead": 0 if told[0].ahead is None else told[0].ahead,
            "tried": told[0].tried,
        }
        hidden = [one for one in told if one.chosen and one.shift == 0]
        if hidden and len(hidden) == len(told) and all(one.itself == one.tried for one in hidden):
            return found(self, what="input", masked=True, lines=lines, **facts)
        backward = [one for one in told if one.reach is not None and one.reach <= 0]
        if len(backward) < len(told):  # one of them is seen whole: an autoencoder, or a leak
            return fine(self, **facts)
        steps = [one.shift - (one.reach or 0) for one in backward]
        if 1 in steps:
            return fine(self, **facts)
        if all(step >= 2 for step in steps):
            return found(self, what="shifted", lines=lines, **facts)
        if all(step == 0 for step in steps):
            if all(one.sees_itself and one.sees_back for one in backward):
                return found(self, what="input", lines=lines, **facts)
            return question(
                self, "each step is written again from itself alone, which may be meant",
                what="input", lines=lines, **facts,
            )  # fmt: skip
        return fine(self, **facts)


def _column(rehearsal: Rehearsal) -> dict[str, Any] | None:
    """A place of the input that is the target of every sample; None where there is none."""
    target = rehearsal.recorded.target
    if target is None or target.dim() == 0 or target.size(0) < FEWEST:
        return None
    samples = target.size(0)
    if target.numel() != samples or is_whole(target) or target.dtype is torch.bool:
        return None
    wanted = target.detach().reshape(samples, 1)
    if len(wanted.unique()) < FEWEST // 2 or bool((wanted == wanted.round()).all()):
        return None  # a few whole numbers may agree with something by chance
    for path, tensor in tensors_of(rehearsal.inputs):
        if tensor.dim() < 2 or tensor.size(0) != samples or tensor.layout is not torch.strided:
            continue
        if not tensor.is_floating_point():
            continue
        flat = tensor.detach().reshape(samples, -1)
        if flat.size(1) < 2:
            continue
        same = (flat.to(wanted.dtype) == wanted.to(flat.device)).all(0).nonzero().reshape(-1)
        if not len(same) or len(same) > flat.size(1) // 2:
            continue
        inner = 1
        for size in tensor.shape[2:]:
            inner *= size
        place = int(same[-1])
        last = place // inner == tensor.size(1) - 1
        return {
            "input": show_path(path[1:]) if len(path) > 1 else "",
            "place": place // inner,
            "places": tensor.size(1),
            "samples": samples,
            "certain": last or tensor.dim() == 2,
        }
    return None
