"""Answers fit their samples: the trained model scores better than with the answers to others.

Experiment: at the end of the run, the kept batch is run with the trained weights; then the loss is
computed again with each sample's output in the place of another's.

Meaning: where both losses are the same, nothing of what was learnt depends on the sample: a network
that gives one answer for all, however its loss fell.

Cost: two passes of model and loss.

Does not apply: where the loss cannot be computed again, or compares samples with each other, where
it has no targets of their own, and where fewer than eight samples are in a batch.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from nethook.addresses.nested import map_tensors, tensors
from nethook.examining.experiment import Result, fine, not_applicable
from nethook.examining.loss_calls import BY_HAND
from nethook.examining.probes.moved import change
from nethook.examining.probes.rows import why_not_samples
from nethook.examining.rehearsal import Ran, Rehearsal

FEWEST: Final = 8
_KINDS: Final = frozenset(
    {"cross_entropy", "nll", "mse", "l1", "smooth_l1", "huber", "bce", "bce_with_logits", "kl_div",
     "gaussian_nll", "poisson_nll", "multi_margin", "multilabel_soft_margin", "soft_margin"}
)  # fmt: skip
_BY_HAND: Final = ("sub", "rsub")


class AnswersFitSamples:
    """See the module."""

    name = "answers fit their samples"
    turn = 8
    wants_trained = True

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if not rehearsal.replayable or rehearsal.passage is None:
            return rehearsal.why_not or "the loss cannot be computed again"
        call, loss = rehearsal.recorded.main, rehearsal.recorded.loss
        if call is None or loss is None or loss.numel() != 1 or not bool(loss.isfinite().all()):
            return "no loss is known that compares answers with targets"
        if call.inside_model:
            return "the loss is computed inside the model"
        by_hand = call.kind == BY_HAND and call.options.get("operation") in _BY_HAND
        if call.kind not in _KINDS and not by_hand:
            return "the loss is not one that compares answers with targets"
        if rehearsal.history.size < FEWEST:
            return f"there are fewer than {FEWEST} samples"
        if rehearsal.passage.numbers_used:
            return rehearsal.passage.numbers_used
        return why_not_samples(rehearsal) or None

    def run(self, rehearsal: Rehearsal) -> Result:
        """The answers of others, half the batch away."""
        size = rehearsal.history.size
        own = rehearsal.run()
        if not _has_rows(own.output, size):
            return not_applicable(self, "the output has no row for each sample")
        others = [
            _loss(rehearsal.run(answers=partial(_turned, size=size, by=by)))
            for by in (size // 2, max(1, size // 3))
        ]
        mine, other = _loss(own), sum(others) / len(others)
        alike = _all_alike(own.output, size)
        if other == mine and not alike:
            return not_applicable(self, "the loss has no targets that belong to single samples")
        return fine(self, own=mine, others=other, samples=size, alike=alike)


def _loss(ran: Ran) -> float:
    return float("nan") if ran.loss is None else float(ran.loss.detach())


def _has_rows(output: Any, size: int) -> bool:
    return any(tensor.dim() and len(tensor) == size for _, tensor in tensors(output))


def _turned(output: Any, size: int, by: int) -> Any:
    """Every sample's output in the place of another's."""
    return map_tensors(
        lambda tensor: tensor.roll(by, 0) if tensor.dim() and len(tensor) == size else tensor,
        output,
    )


def _all_alike(output: Any, size: int) -> bool:
    """Whether the outputs of all samples are the same, but for rounding."""
    return not any(
        bool((change(tensor, tensor[:1].expand_as(tensor)) > 1e-3).any())
        for _, tensor in tensors(output)
        if tensor.is_floating_point() and tensor.dim() and len(tensor) == size
    )
