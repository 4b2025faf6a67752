"""No look ahead: a prediction does not move with the very thing that it is to predict.

Experiment: where the target of row t is what the input has one or more steps later, that token (or
value) is changed, and the target is kept. The row must not move.

Meaning: a causal mask is missing, a convolution pads on both sides, an RNN runs both ways.

Cost: up to seven passes of model and loss per input that the target is.

Does not apply: where no input is the target shifted by one or more, which leaves out autoencoders,
masked language models and classifiers. Where there is another such input that is not seen ahead
(a decoder's own), or where the model may encode the whole sequence first on purpose (an autoencoder
of sequences), nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from nethook.examining.experiment import Result, fine, found, not_applicable, question
from nethook.examining.probes.sequences import Followed, aligned_inputs, followed
from nethook.examining.probes.source import line_of_class, line_of_loss
from nethook.examining.rehearsal import Rehearsal


class NoLookAhead:
    """See the module."""

    name = "no look ahead"
    turn = 2

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if not rehearsal.replayable:
            return f"the loss could not be computed again: {rehearsal.why_not}"
        if not aligned_inputs(rehearsal):
            return "the target is no part of the inputs"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Every input that the target is must be seen ahead."""
        told = followed(rehearsal)
        later = [one for one in told if one.shift_of_output >= 1]
        if not later:
            return not_applicable(self, "the target is not a later part of the inputs")
        seen = [one for one in later if looks_ahead(one)]
        facts = {
            "shift": later[0].shift_of_output,
            "reach": -1 if later[0].reach is None else later[0].reach,
            "tried": later[0].tried,
        }
        if len(seen) < len(later):
            return fine(self, **facts)
        lines = [line for line in (line_of_class(rehearsal.model), line_of_loss(rehearsal)) if line]
        meant = _why_meant(rehearsal)
        if meant:
            return question(self, meant, lines=lines, **facts)
        return found(self, lines=lines, **facts)


def looks_ahead(told: Followed) -> bool:
    """Whether rows see their own target, which comes later."""
    return told.sees_itself and (told.reach is None or told.reach >= told.shift)


def _why_meant(rehearsal: Rehearsal) -> str:
    """Why a model may see the whole sequence on purpose; "" where nothing speaks for it."""
    modules = list(rehearsal.model.modules())
    if any(isinstance(module, nn.TransformerDecoderLayer) for module in modules):
        return "a decoder may be given an encoding of the whole sequence on purpose"
    recurrent = [module for module in modules if isinstance(module, nn.RNNBase | nn.RNNCellBase)]
    both_ways = any(getattr(module, "bidirectional", False) for module in recurrent)
    if len(recurrent) > 1 and not (both_ways and len(recurrent) == 1):
        return "an encoder may read the whole sequence before a decoder writes it, on purpose"
    calls = [call for call in rehearsal.recorded.calls if call.prediction is not None]
    if len(calls) > 1 or not _is_all(rehearsal):
        return "the loss has other terms: the sequence may be encoded and written again on purpose"
    return ""


def _is_all(rehearsal: Rehearsal) -> bool:
    """Whether the loss is the one call that is known, and nothing is added to it."""
    call, loss = rehearsal.recorded.main, rehearsal.recorded.loss
    if call is None or loss is None or call.prediction is None or call.target is None:
        return True
    if call.kind not in ("cross_entropy", "nll", "mse", "l1") or "weight" in call.options:
        return True
    functions: dict[str, Callable[..., torch.Tensor]] = {
        "cross_entropy": nn.functional.cross_entropy,
        "nll": nn.functional.nll_loss,
        "mse": nn.functional.mse_loss,
        "l1": nn.functional.l1_loss,
    }
    prediction, target = call.prediction.detach(), call.target.detach()
    each = functions[call.kind](prediction, target, reduction="none").double()
    if call.target.dtype is torch.int64:
        each = each[call.target != call.options.get("ignore_index", -100)]
    total = float(loss.detach())
    near = [float(each.mean()), float(each.sum())]
    return any(abs(total - value) <= 0.02 * abs(value) + 1e-9 for value in near) or (
        total < near[0]  # divided for accumulation, or masked
    )
