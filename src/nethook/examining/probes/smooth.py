"""Whether one number of an output follows several samples, or one at a time by a choice.

Experts with limited room take some rows and drop others: replace the others, and a row may fall
out. That is a choice, and no gradient passes through it: what is computed of a row follows this row
alone. Attention, sums and layouts that mix samples pass gradients to several. For tokens, which
have no gradient, the rows of the embedding say whose words were used.
"""

from __future__ import annotations

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.examining.probes.batch_axis import (
    BatchAxis,
    is_whole,
    tensors_of,
    with_tensors,
)
from nethook.examining.probes.graph import gradients, nodes_behind
from nethook.examining.rehearsal import Rehearsal
from nethook.hooks.autograd.nodes import leaf_of


def has_samples(tensor: torch.Tensor, size: int) -> bool:
    """Whether an output has a row per sample. A table of all pairs of samples has not."""
    shape = list(tensor.shape)
    if not tensor.is_floating_point() or not shape or tensor.layout is not torch.strided:
        return False
    if shape.count(size) > 1 and len(shape) == 2:
        return False
    return size in shape or (shape[0] >= size and shape[0] % size == 0)


def follows_several(rehearsal: Rehearsal, axis: BatchAxis, output: int, element: int) -> bool:
    """Whether an element of an output follows more than one sample; True where that is unclear.

    Arguments:
        rehearsal: of the step.
        axis: of the samples.
        output: which of those that have samples.
        element: its number, counted in the order of the output.
    """

    def watched(number: int, tensor: torch.Tensor) -> torch.Tensor:
        if number not in axis.dims or not tensor.is_floating_point():
            return tensor
        return tensor.detach().clone().requires_grad_()

    ran = rehearsal.run(
        with_tensors(rehearsal.inputs, watched), training=False, grad=True, outputs_only=True
    )
    made = [tensor for _, tensor in tensors(ran.output) if has_samples(tensor, axis.size)]
    with torch.enable_grad():
        chosen = made[output].reshape(-1)[element]
    if not chosen.requires_grad:
        return True
    words = [
        (tensors_of(rehearsal.inputs)[number][1], dim)
        for number, dim in axis.dims.items()
        if is_whole(tensors_of(rehearsal.inputs)[number][1])
    ]
    of_words = _by_words(rehearsal.model, chosen, words, axis.size)
    return _by_inputs(rehearsal.model, chosen, axis) if of_words is None else of_words


def _by_inputs(model: nn.Module, chosen: torch.Tensor, axis: BatchAxis) -> bool:
    """The gradients of the inputs: the copies of a run are leaves of its graph."""
    own = {id(parameter) for parameter in model.parameters()}
    leaves = [leaf for node in nodes_behind(chosen) if (leaf := leaf_of(node)) is not None]
    given = [leaf for leaf in leaves if id(leaf) not in own and axis.size in leaf.shape]
    if not given:
        return True
    reached: set[int] = set()
    found = gradients(chosen, *given)
    for leaf, gradient in zip(given, found, strict=True):
        if gradient is not None:
            fits = (dim for dim in axis.dims.values() if leaf.shape[dim : dim + 1] == (axis.size,))
            dim = next(fits, list(leaf.shape).index(axis.size))
            others = [other for other in range(leaf.dim()) if other != dim]
            share = gradient.abs().sum(others) if others else gradient.abs()
            reached |= set(share.nonzero().reshape(-1).tolist())
    return len(reached) != 1


def _by_words(
    model: nn.Module,
    chosen: torch.Tensor,
    words: list[tuple[torch.Tensor, int]],
    size: int,
) -> bool | None:
    """The rows of the embeddings; None where there are no words."""
    tables = [
        module.weight
        for module in model.modules()
        if isinstance(module, nn.Embedding) and module.weight.requires_grad
    ]
    if not words or not tables:
        return None
    known = torch.cat([tensor.reshape(-1) for tensor, _ in words]).unique()
    of_each = [
        torch.cat([tensor.select(dim, sample).reshape(-1) for tensor, dim in words])
        for sample in range(size)
    ]
    for gradient in gradients(chosen, *tables):
        if gradient is None:
            continue
        dense = gradient.to_dense() if gradient.is_sparse else gradient
        reached = dense.abs().sum(1).nonzero().reshape(-1)
        if not len(reached):
            continue
        if not bool(torch.isin(reached, known).all()):
            return True  # a table of positions, or one that is also the last layer
        if not any(bool(torch.isin(reached, sample).all()) for sample in of_each):
            return True
    return False
