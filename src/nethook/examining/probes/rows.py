"""Whether the rows of a batch are samples: what a model may mix only if they are not.

Documents of a query, nodes of a graph, the instances of a bag and the elements of a set lie along
the first dimension as samples do, and are meant to know of each other. `why_not_samples` says what
speaks against samples; `shown_by` says what speaks for them.
"""

from __future__ import annotations

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import tensors
from nethook.examining.probes.batch_axis import BatchAxis, is_whole, tensors_of
from nethook.examining.rehearsal import Rehearsal

FEWEST = 4
"""Samples that a batch must have for an experiment with them."""


def sample_axes(rehearsal: Rehearsal) -> list[BatchAxis]:
    """The dimensions that may count samples, the likelier first.

    The target must follow: it has the size of that dimension, or, laid flat, a multiple of it.
    """
    given = [tensor for _, tensor in tensors_of(rehearsal.inputs)]
    main = next((tensor for tensor in given if tensor.dim() > 1), None)
    main = main if main is not None else next((tensor for tensor in given if tensor.dim()), None)
    target = rehearsal.recorded.target
    if main is None or target is None or target.dim() == 0:
        return []
    loader = rehearsal.history.loader
    dims = [
        dim
        for dim in range(min(2, main.dim()))
        if main.size(dim) >= FEWEST and _follows(target, main.size(dim), dim)
    ]
    if loader is not None and loader.batch_size is not None:
        told = [dim for dim in dims if main.size(dim) == loader.batch_size]
        dims = [*told, *(dim for dim in dims if dim not in told)]
    if main.dim() < 3 and not is_whole(main):
        dims = [dim for dim in dims if dim == 0]  # the second dimension is features
    return [BatchAxis.of(rehearsal.inputs, dim, main.size(dim)) for dim in dims]


def _follows(target: torch.Tensor, size: int, dim: int) -> bool:
    if dim == 0:
        return target.size(0) % size == 0
    return size in target.shape[:2] or (target.dim() == 1 and target.size(0) % size == 0)


def shown_by(rehearsal: Rehearsal, axis: BatchAxis) -> str:
    """What shows that rows are samples; "" where nothing does."""
    loader = rehearsal.history.loader
    if loader is not None and loader.collated and loader.batch_size == axis.size:
        return f"the data loader puts {axis.size} samples into a batch"
    return ""


def why_not_samples(rehearsal: Rehearsal) -> str:
    """What speaks against rows being samples, in words; "" where nothing does."""
    history, target = rehearsal.history, rehearsal.recorded.target
    if target is None:
        return "no target is known that goes with each sample"
    if history.repeats:
        return "every step has the same batch: its rows may belong together"
    if history.changes_size:
        return "batches differ in size: their rows may be parts of one thing"
    if _is_count(target):
        return "the targets are the numbers of the rows: samples are compared with each other"
    if target.numel() > 1 and bool((target == target.reshape(-1)[0]).all()):
        return "all targets are the same"
    axes = sample_axes(rehearsal)
    if not axes:
        return f"no dimension of the inputs has {FEWEST} rows or more that targets go with"
    return _graph(rehearsal.inputs, rehearsal.model, axes[0].size) or _listwise(rehearsal, axes[0])


def _is_count(target: torch.Tensor) -> bool:
    if target.dim() != 1 or not is_whole(target) or target.numel() < 2:
        return False
    steps = target[1:] - target[:-1]
    # Two views of each sample give every number twice, or point at the other half.
    return bool((steps == 1).sum() >= target.numel() - 2)


def _graph(inputs: Inputs, model: nn.Module, size: int) -> str:
    for path, tensor in tensors_of(inputs):
        if tensor.layout is not torch.strided:
            return "an input is sparse: rows are connected with each other"
        name = "".join(map(str, path))
        if tuple(tensor.shape[-2:]) == (size, size) or tuple(tensor.shape[:2]) == (size, size):
            return f"an input ({name}) is {size} by {size}: rows are connected with each other"
        if (
            is_whole(tensor)
            and tensor.dim() == 2
            and 2 in tensor.shape
            and size not in tensor.shape
        ):
            return f"an input ({name}) is a list of pairs: rows are connected with each other"
    for module in model.modules():
        held = {**dict(module.named_buffers(recurse=False)), **vars(module)}
        for _, tensor in tensors(list(held.values())):
            if isinstance(tensor, nn.Parameter):
                continue
            if tensor.layout is not torch.strided or tuple(tensor.shape[:2]) == (size, size):
                return f"{type(module).__name__} holds connections between rows"
    return ""


def _listwise(rehearsal: Rehearsal, axis: BatchAxis) -> str:
    """Rows that are the classes of one answer: the loss chooses among them."""
    call = rehearsal.recorded.main
    if call is None or call.prediction is None or call.target is None:
        return ""
    prediction = call.prediction
    if call.kind in ("cross_entropy", "nll"):
        classes = prediction.size(1 if prediction.dim() > 1 else 0)
        if classes == axis.size and (prediction.dim() == 1 or prediction.size(0) != axis.size):
            return "the loss chooses among the rows: they belong to one answer"
    if prediction.dim() == 2 and prediction.size(0) == prediction.size(1) == axis.size:
        return "the prediction compares every row with every other"
    return ""
