"""The input matters: with other inputs the model returns something else.

Experiment: in evaluation mode, all samples change places; where the output does not move, all
numbers are replaced by noise as well, and then the same is done with other weights: a last layer
may begin at zero, and units may be dead.

Meaning: an argument is overwritten or never used, a softmax runs over a single class.

Cost: one pass of the model, and up to six more where the output does not move.

Does not apply: where all samples are the same. Single inputs without effect are no fault: masks and
labels may well have none. A question: where the model draws what it returns, and takes from its
input the number of samples; where the loss has the input itself, as of a density that is learnt;
where its targets are the same for all samples, as of a generator; and where the input matters with
other weights.
"""

from __future__ import annotations

import torch

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import tensors
from nethook.examining.experiment import Result, fine, found, not_applicable, question
from nethook.examining.probes.batch_axis import is_whole, tensors_of, with_tensors
from nethook.examining.probes.fresh_weights import draw_weights
from nethook.examining.probes.moved import change, comparable
from nethook.examining.probes.once import evaluated
from nethook.examining.rehearsal import Rehearsal


class InputMatters:
    """See the module."""

    name = "the input matters"
    turn = 3

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if not any(_differs(tensor) for _, tensor in tensors_of(rehearsal.inputs)):
            return "there is one sample only, or all are the same"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Other samples first, then noise."""
        base = evaluated(rehearsal).output
        if not any(tensor.is_floating_point() for _, tensor in tensors(base)):
            return not_applicable(self, "the output holds no numbers")
        if _matters(rehearsal, base):
            return fine(self)
        facts = {"inputs": len(tensors_of(rehearsal.inputs))}
        reason = _why_meant(rehearsal, base)
        return question(self, reason, **facts) if reason else found(self, **facts)


def _matters(rehearsal: Rehearsal, base: object) -> bool:
    """Whether other samples move the output, or noise does."""
    return any(
        _moved(
            base, rehearsal.run(other(rehearsal.inputs), training=False, outputs_only=True).output
        )
        for other in (_turned, _noise)
    )


def _moved(base: object, now: object) -> bool:
    return any(
        not comparable(mine, theirs) or bool((change(mine, theirs) > 0).any())
        for (_, mine), (_, theirs) in zip(tensors(base), tensors(now), strict=False)
        if mine.is_floating_point()
    )


def _why_meant(rehearsal: Rehearsal, base: object) -> str:
    """Why an input without effect may be meant, in words; "" where it is not."""
    passage, target = rehearsal.passage, rehearsal.recorded.target
    if passage is None or any(constant.path is not None for constant in passage.constants):
        return "the loss may take from the input what it needs"
    if target is None or not _differs(target):
        return "the targets are the same for all samples"
    drawn = rehearsal.run(training=False, outputs_only=True, seed=1).output
    if _moved(base, drawn):
        return "the model draws what it returns"
    other = rehearsal.twin()
    draw_weights(other.model)
    if _matters(other, other.run(training=False, outputs_only=True).output):
        return "with other weights it matters"
    return ""


def _differs(tensor: torch.Tensor) -> bool:
    """Whether there are two different samples in it."""
    if tensor.layout is not torch.strided or tensor.is_nested or not tensor.dim():
        return False
    # What is expanded is read once: it may have far more elements than memory.
    seen = tensor[tuple(slice(None) if step else slice(1) for step in tensor.stride())]
    return not torch.equal(seen, seen[:1].expand_as(seen))


def _is_one_number(tensor: torch.Tensor) -> bool:
    """Whether it has a whole number for each sample: a length, or the number of a user."""
    return tensor.dim() == 1 and is_whole(tensor)


def _turned(inputs: Inputs) -> Inputs:
    """Every sample in the place of the next; lengths of sequences stay beside other inputs."""
    numbers_alone = all(_is_one_number(tensor) for _, tensor in tensors_of(inputs))

    def turn(_: int, tensor: torch.Tensor) -> torch.Tensor:
        if _differs(tensor) and (numbers_alone or not _is_one_number(tensor)):
            return tensor.detach().roll(1, 0)
        return tensor

    return with_tensors(inputs, turn)


def _noise(inputs: Inputs) -> Inputs:
    """Numbers replaced by noise of their size; whole numbers keep their values."""

    def noise(_: int, tensor: torch.Tensor) -> torch.Tensor:
        if not _differs(tensor):
            return tensor
        if tensor.is_floating_point():
            source = torch.Generator().manual_seed(1)
            drawn = torch.randn(tensor.shape, generator=source).to(tensor)
            return tensor.detach().mean() + tensor.detach().std() * drawn
        return tensor if tensor.dim() == 1 else tensor.flip(0)

    return with_tensors(inputs, noise)
