"""Numbers of predictions and targets, from a sample of their elements.

Everything is computed where the tensors are, into one small tensor, without waiting for a device
and without an operation that torch calls nondeterministic.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from nethook.watching.losses_kinds import (
    LOG_PROBABILITIES,
    LOGITS,
    PROBABILITIES,
    Operands,
)

SAMPLE: Final = 1 << 14
"""Elements of one tensor that are looked at."""

SHOWN_CLASSES: Final = 1000
"""Up to so many classes are counted one by one."""

Numbers = dict[str, torch.Tensor]
"""Name -> a tensor without or with one dimension, still on its device."""


def numbers_of(operands: Operands) -> Numbers:
    """The numbers of a loss's prediction and target; empty where neither could be had."""
    prediction, target = operands.prediction, operands.target
    with torch.no_grad(), torch.autocast(_device_type(operands), enabled=False):
        found: Numbers = {}
        if _unreadable(prediction) or _unreadable(target):
            return found
        if prediction is not None and target is not None and operands.classes is not None:
            found |= _of_classes(operands, prediction, target)
        else:
            found |= _of_values(operands, prediction, target)
        if operands.given is not None and not _unreadable(operands.given):
            found |= _of_given(operands.given, operands.classes)
        return found


def _device_type(operands: Operands) -> str:
    for tensor in (operands.prediction, operands.target):
        if tensor is not None and tensor.device.type != "meta":
            return tensor.device.type
    return "cpu"


def _unreadable(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and (
        tensor.layout is not torch.strided
        or tensor.is_complex()
        or tensor.is_quantized
        or tensor.device.type == "meta"
        or not tensor.numel()
    )


# -- targets that are classes, or probabilities of classes ----------------------------------------


def _of_classes(operands: Operands, prediction: torch.Tensor, target: torch.Tensor) -> Numbers:
    dim = operands.classes or 0
    grid = _grid(prediction, dim)  # (samples, positions, classes)
    count = grid.shape[-1]
    scores = _thinned(grid, count).flatten(0, 1).float()  # (rows, classes)
    if target.shape == prediction.shape:
        soft = _thinned(_grid(target, dim), count).flatten(0, 1).float()
        return _of_soft_classes(operands, scores, soft)
    labels = _thinned(target.reshape(grid.shape[:2]), count).flatten()
    valid = torch.ones_like(labels, dtype=torch.bool)
    if operands.ignore is not None:
        valid = labels != operands.ignore
    inside = valid & (labels >= 0) & (labels < count)
    weights = inside.float()
    total = weights.sum().clamp(min=1.0)
    guesses = scores.argmax(1)
    every = torch.arange(count, device=scores.device)
    limits = torch.iinfo(labels.dtype)
    found = {
        "rows": weights.sum(),
        "target.min": labels.masked_fill(~valid, limits.max).min(),
        "target.max": labels.masked_fill(~valid, limits.min).max(),
        "target.integral": torch.ones((), device=labels.device),
        "target.ignored": (~valid).float().mean(),
        "target.outside": (valid & ~inside).float().sum(),
        "accuracy": ((guesses == labels) & inside).float().sum() / total,
    }
    target_counts = ((labels[:, None] == every) & inside[:, None]).sum(0).float()
    guess_counts = ((guesses[:, None] == every) & inside[:, None]).sum(0).float()
    found |= _of_counts("target", target_counts) | _of_counts("prediction", guess_counts)
    return found | _of_scores(operands, scores, weights[:, None], total)


def _of_soft_classes(operands: Operands, scores: torch.Tensor, soft: torch.Tensor) -> Numbers:
    every = torch.arange(scores.shape[1], device=scores.device)
    guesses, labels = scores.argmax(1), soft.argmax(1)
    sums = soft.sum(1)
    weights = torch.ones(len(scores), 1, device=scores.device)
    found = {
        "rows": weights.sum(),
        "target.min": soft.min(),
        "target.max": soft.max(),
        "target.row_sums": torch.stack(sums.aminmax()),
        "accuracy": (guesses == labels).float().mean(),
    }
    found |= _of_counts("target", (labels[:, None] == every).sum(0).float())
    found |= _of_counts("prediction", (guesses[:, None] == every).sum(0).float())
    return found | _of_scores(operands, scores, weights, weights.sum().clamp(min=1.0))


def _of_scores(
    operands: Operands, scores: torch.Tensor, weights: torch.Tensor, total: torch.Tensor
) -> Numbers:
    """How sure the predictions are, and how much they differ between samples."""
    logs = scores if operands.space == LOG_PROBABILITIES else scores.log_softmax(1)
    chances = logs.exp()
    entropy = -(torch.where(chances > 0, chances * logs, 0.0) * weights).sum() / total
    # What a log_softmax was given is known up to a number a row; its range within a row is not.
    lowest, highest = scores.aminmax(dim=1)
    return {
        "prediction.entropy": entropy,
        "prediction.confidence": (chances.amax(1, keepdim=True) * weights).sum() / total,
        "spread": _spread(chances),
        "prediction.width": (highest - lowest).max(),
        "prediction.min": lowest.min(),
        "prediction.max": highest.max(),
    }


def _of_counts(of: str, counts: torch.Tensor) -> Numbers:
    """What counts of classes say: how many there are, their entropy, the share of the largest."""
    total = counts.sum().clamp(min=1.0)
    shares = counts / total
    found = {
        f"{of}.distinct": (counts > 0).sum(),
        f"{of}.class_entropy": -torch.where(shares > 0, shares * shares.log(), 0.0).sum(),
        f"{of}.largest_share": shares.max(),
    }
    if len(counts) <= SHOWN_CLASSES:
        found["class_counts" if of == "target" else "argmax_counts"] = counts
    return found


# -- targets that are numbers ---------------------------------------------------------------------


def _of_values(
    operands: Operands, prediction: torch.Tensor | None, target: torch.Tensor | None
) -> Numbers:
    found: Numbers = {}
    first = second = None
    if prediction is not None:
        first = _elements(prediction)
        found |= _of_numbers("prediction", first)
        found["spread"] = _spread(_samples(prediction))
        found |= _row_sums("prediction", prediction)
    if target is not None:
        second = _elements(target)
        found |= _of_numbers("target", second)
        found["target.integral"] = (second == second.round()).all()
        found["target.binary_share"] = ((second == 0) | (second == 1)).float().mean()
        found |= _row_sums("target", target)
    if first is not None and second is not None and first.shape == second.shape:
        found |= _of_pairs(operands, first, second)
    return found


def _of_numbers(of: str, elements: torch.Tensor) -> Numbers:
    ordered = elements.sort().values
    return {
        f"{of}.min": elements.min(),
        f"{of}.max": elements.max(),
        f"{of}.mean": elements.mean(),
        f"{of}.std": elements.std(correction=0),
        f"{of}.distinct": (ordered[1:] != ordered[:-1]).sum() + 1,
    }


def _of_pairs(operands: Operands, first: torch.Tensor, second: torch.Tensor) -> Numbers:
    found = {"elements": torch.full((), len(first), device=first.device)}
    if operands.space in {LOGITS, PROBABILITIES}:
        guessed = first > (0.0 if operands.space == LOGITS else 0.5)
        wanted = second > 0.5
        found["accuracy"] = (guessed == wanted).float().mean()
        found["prediction.positive_share"] = guessed.float().mean()
        found["target.positive_share"] = wanted.float().mean()
        for of in ("prediction", "target"):
            share = found[f"{of}.positive_share"]
            both = torch.stack([share, 1 - share])
            found[f"{of}.class_entropy"] = -torch.where(both > 0, both * both.log(), 0.0).sum()
    centred, other = first - first.mean(), second - second.mean()
    size = (centred.square().sum() * other.square().sum()).sqrt()
    found["correlation"] = torch.where(size > 0, (centred * other).sum() / size, 0.0)
    found["error"] = (first - second).abs().mean()
    return found


def _of_given(given: torch.Tensor, classes: int | None) -> Numbers:
    """What a log_softmax was given: probabilities have rows that sum to 1, within 0 and 1."""
    if classes is None or given.dim() <= classes:
        elements = _elements(given)
        return {"given.min": elements.min(), "given.max": elements.max()}
    grid = _grid(given, classes)
    rows = _thinned(grid, grid.shape[-1]).float()
    sums = rows.sum(-1)
    return {
        "given.min": rows.min(),
        "given.max": rows.max(),
        "row_sums": torch.stack(sums.aminmax()),
    }


# -- samples --------------------------------------------------------------------------------------


def _stride(have: int, want: int) -> int:
    return max(1, -(-have // max(want, 1)))


def _grid(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """(…, classes, …) -> (samples, positions, classes), without a copy where it can be."""
    if dim == tensor.dim() - 1:
        return tensor.reshape(-1, 1, tensor.shape[-1])
    grid = tensor.flatten(dim + 1).movedim(dim, -1)
    return grid[None] if dim == 0 else grid.flatten(0, -3)


def _thinned(grid: torch.Tensor, classes: int) -> torch.Tensor:
    """Every so-many-th position, and sample, of (samples, positions, …): `SAMPLE` elements."""
    samples, positions = grid.shape[:2]
    step = _stride(samples * positions, SAMPLE // max(classes, 1))
    along = min(step, positions)
    return grid[:: -(-step // along), ::along]


def _elements(tensor: torch.Tensor) -> torch.Tensor:
    while not tensor.is_contiguous() and tensor.numel() > 4 * SAMPLE and tensor.shape[0] > 1:
        tensor = tensor[::2]  # else `reshape` would copy all of it
    flat = tensor.reshape(-1)
    return flat[:: _stride(flat.numel(), SAMPLE)].float()


def _samples(tensor: torch.Tensor) -> torch.Tensor:
    """(samples, features): up to 256 features, and `SAMPLE` elements."""
    if tensor.dim() == 0:
        return tensor.reshape(1, 1).float()
    few = tensor[:: _stride(len(tensor), 64)]
    features = few.reshape(len(few), -1)
    return features[:, :: _stride(features.shape[1], 256)].float()


def _row_sums(of: str, tensor: torch.Tensor) -> Numbers:
    """The least and greatest sum over dimension 1, where there is one."""
    if tensor.dim() < 2 or not 1 < tensor.shape[1] <= SAMPLE:
        return {}
    grid = _grid(tensor, 1)
    sums = _thinned(grid, grid.shape[-1]).float().sum(-1)
    name = "row_sums" if of == "prediction" else f"{of}.row_sums"
    return {name: torch.stack(sums.aminmax())}


def _spread(samples: torch.Tensor) -> torch.Tensor:
    """How much samples differ: the root of their mean variance, by the root mean square of all."""
    size = samples.square().mean()
    return torch.where(size > 0, (samples.var(0, correction=0).mean() / size).sqrt(), 0.0)


def packed(numbers: Numbers) -> tuple[torch.Tensor, list[tuple[str, int | None]]]:
    """All numbers as one tensor, and where each is in it (None: it is a single number)."""
    layout = [(name, len(each) if each.dim() else None) for name, each in numbers.items()]
    return torch.cat([each.reshape(-1).float() for each in numbers.values()]), layout


def unpacked(values: list[float], layout: list[tuple[str, int | None]]) -> dict[str, Any]:
    """Nested plain data: `{"target": {"min": …}, "accuracy": …}`."""
    found: dict[str, Any] = {}
    at = 0
    for name, length in layout:
        value: Any = values[at] if length is None else values[at : at + length]
        at += 1 if length is None else length
        if name.endswith("_counts"):
            value = [int(each) for each in value]
        elif name.endswith((".distinct", "rows", "elements", ".outside")):
            value = int(value)
        elif name.endswith(".integral"):
            value = bool(value)
        group, _, key = name.rpartition(".")
        (found.setdefault(group, {}) if group else found)[key] = value
    return found
