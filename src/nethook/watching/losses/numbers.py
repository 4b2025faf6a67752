"""Numbers of predictions and targets, from a sample of their elements.

Everything is computed where the tensors are, into one small tensor, without waiting for a device
and without an operation that torch calls nondeterministic.
"""

from __future__ import annotations

import math
from typing import Any, Final

import torch

from nethook.hooks.modes import unrecorded
from nethook.stats.sampling import digits, looked_up, sampled
from nethook.stats.shards import is_shared
from nethook.watching.losses.kinds import (
    LOG_PROBABILITIES,
    LOGITS,
    PROBABILITIES,
    Operands,
)

SAMPLE: Final = 1 << 14
"""Elements of one tensor that are looked at."""

FEW: Final = 1 << 11
"""Elements among which different values are counted: they have to be sorted for that."""

SHOWN_CLASSES: Final = 1000
"""Up to so many classes are counted one by one."""

Names = tuple[str, ...] | str
"""One name an element, or one for all of them."""


class Numbers:
    """Numbers with names, still on their device.

    Each operation on a few numbers costs as much as one on thousands, so numbers of the same kind
    are computed together: `add(("a.min", "b.min"), tensor)` has one name an element, and
    `add("counts", tensor)` one for all of them.
    """

    def __init__(self) -> None:
        self._names: list[Names] = []
        self._parts: list[torch.Tensor] = []

    def add(self, names: Names, numbers: torch.Tensor) -> None:
        """Numbers of one dimension."""
        self._names.append(names)
        self._parts.append(numbers.float())

    def extend(self, others: Numbers) -> None:
        """Those of another collection, which are on the same device."""
        self._names += others._names
        self._parts += others._parts

    def __bool__(self) -> bool:
        return bool(self._parts)

    def packed(self) -> torch.Tensor:
        """All numbers as one tensor."""
        return torch.cat(self._parts)

    def layout(self) -> list[tuple[Names, int]]:
        """Names and how many numbers they have, in the order of `packed`."""
        return [(name, len(part)) for name, part in zip(self._names, self._parts, strict=True)]


def unpacked(values: list[float], layout: list[tuple[Names, int]]) -> dict[str, Any]:
    """Nested plain data: `{"target": {"min": …}, "accuracy": …}`."""
    data: dict[str, Any] = {}
    start = 0
    for names, length in layout:
        numbers = values[start : start + length]
        start += length
        if isinstance(names, str):
            whole = names.endswith("_counts")
            _put(data, names, [int(count) for count in numbers] if whole else numbers)
        else:
            for name, value in zip(names, numbers, strict=True):
                _put(data, name, _typed(name, value))
    return data


def _typed(name: str, value: float) -> object:
    if name.endswith((".distinct", "rows", "elements", ".outside")):
        return int(value)
    return bool(value) if name.endswith(".integral") else value


def _put(data: dict[str, Any], name: str, value: object) -> None:
    group, _, key = name.rpartition(".")
    (data.setdefault(group, {}) if group else data)[key] = value


@unrecorded
def numbers_of(operands: Operands) -> Numbers:
    """The numbers of a loss's prediction and target; none where neither could be had."""
    numbers = Numbers()
    prediction, target = operands.prediction, operands.target
    if _unreadable(prediction) or _unreadable(target):
        return numbers
    device = _device_type(operands)
    was_on = torch.is_autocast_enabled(device)
    try:  # as in `unrecorded`: no context manager
        torch.set_autocast_enabled(device, False)
        if prediction is not None and target is not None and operands.classes is not None:
            _of_classes(numbers, operands, prediction, target)
        else:
            _of_values(numbers, operands, prediction, target)
        if operands.given is not None and not _unreadable(operands.given):
            _of_given(numbers, operands.given, operands.classes)
    finally:
        torch.set_autocast_enabled(device, was_on)
    return numbers


def _device_type(operands: Operands) -> str:
    for tensor in (operands.prediction, operands.target):
        if tensor is not None:
            return tensor.device.type
    return "cpu"


def _unreadable(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and (
        is_shared(tensor)  # asking it would make ranks talk to each other
        or tensor.layout is not torch.strided
        or tensor.is_complex()
        or tensor.is_quantized
        or tensor.device.type == "meta"
        or not tensor.numel()
    )


# -- targets that are classes, or probabilities of classes ----------------------------------------


def _of_classes(
    numbers: Numbers, operands: Operands, prediction: torch.Tensor, target: torch.Tensor
) -> None:
    dim = operands.classes or 0
    count = prediction.shape[dim]
    scores = _rows(prediction, dim, count).float()  # (rows, classes)
    guesses = scores.argmax(1)
    if target.shape == prediction.shape:
        soft = _rows(target, dim, count).float()
        labels = soft.argmax(1)
        inside = torch.ones_like(labels, dtype=torch.bool)
        numbers.add(("target.min", "target.max"), torch.stack(soft.aminmax()))
        numbers.add("target.row_sums", torch.stack(soft.sum(1).aminmax()))
    else:
        labels = _rows(target.unsqueeze(dim), dim, count).flatten()
        inside = _of_labels(numbers, labels, count, operands.ignore)
    weights = inside.float()
    total = weights.sum().clamp(min=1.0)
    hits = ((guesses == labels) & inside).sum() / total
    numbers.add(("rows", "accuracy"), torch.stack([weights.sum(), hits]))
    _of_counts(numbers, torch.stack([labels, guesses]), inside, count)
    _of_scores(numbers, operands, scores, weights, total)


def _of_labels(
    into: Numbers, labels: torch.Tensor, classes: int, ignore: int | None
) -> torch.Tensor:
    """Numbers of class numbers; returns which of them are classes and not left out."""
    inside = (labels >= 0) & (labels < classes)
    names: tuple[str, ...] = ("target.min", "target.max", "target.outside", "target.integral")
    if ignore is None:
        low, high = labels.aminmax()
        numbers = [low, high, (~inside).sum(), torch.ones_like(low)]
    else:
        valid = labels != ignore
        limits = torch.iinfo(labels.dtype)
        low = labels.masked_fill(~valid, limits.max).min()
        high = labels.masked_fill(~valid, limits.min).max()
        inside = inside & valid
        left_out = 1 - valid.float().mean()
        numbers = [low, high, (valid & ~inside).sum(), torch.ones_like(low), left_out]
        names = (*names, "target.ignored")
    into.add(names, torch.stack([number.float() for number in numbers]))
    return inside


def _of_counts(into: Numbers, chosen: torch.Tensor, inside: torch.Tensor, classes: int) -> None:
    """What counts of classes say, wanted and guessed: (2, rows) class numbers."""
    every = torch.arange(classes, device=chosen.device)
    counts = ((chosen[..., None] == every) & inside[:, None]).sum(1).float()  # (2, classes)
    shares = counts / counts.sum(1, keepdim=True).clamp(min=1.0)
    both = ("target", "prediction")
    into.add(tuple(f"{of}.distinct" for of in both), (counts > 0).sum(1))
    into.add(tuple(f"{of}.class_entropy" for of in both), torch.special.entr(shares).sum(1))
    into.add(tuple(f"{of}.largest_share" for of in both), shares.amax(1))
    if classes <= SHOWN_CLASSES:
        into.add("class_counts", counts[0])
        into.add("argmax_counts", counts[1])


def _of_scores(
    into: Numbers,
    operands: Operands,
    scores: torch.Tensor,
    weights: torch.Tensor,
    total: torch.Tensor,
) -> None:
    """How sure the predictions are, and how much they differ between samples."""
    logs = scores if operands.space == LOG_PROBABILITIES else scores.log_softmax(1)
    chances = logs.exp()
    sure = torch.stack([torch.special.entr(chances).sum(1), chances.amax(1)])
    into.add(("prediction.entropy", "prediction.confidence"), (sure * weights).sum(1) / total)
    # What a log_softmax was given is known up to one number per row; its range within a row is not.
    low, high = scores.aminmax(dim=1)
    into.add(
        ("prediction.min", "prediction.max", "prediction.width", "spread"),
        torch.stack([low.min(), high.max(), (high - low).max(), _spread(chances)]),
    )


# -- targets that are numbers ---------------------------------------------------------------------


def _of_values(
    into: Numbers,
    operands: Operands,
    prediction: torch.Tensor | None,
    target: torch.Tensor | None,
) -> None:
    named = [("prediction", prediction), ("target", target)]
    there = [(of, tensor) for of, tensor in named if tensor is not None]
    elements = [_elements(tensor) for _, tensor in there]
    together = len({len(sample) for sample in elements}) == 1
    if together:
        _of_numbers(into, tuple(of for of, _ in there), torch.stack(elements))
    for (of, tensor), sample in zip(there, elements, strict=True):
        if not together:
            _of_numbers(into, (of,), sample[None])
        _row_sums(into, of, tensor)
        if of == "prediction":
            into.add(("spread",), _spread(_samples(tensor)).reshape(1))
        else:
            binary = ((sample == 0) | (sample == 1)).float().mean()
            whole = (sample == sample.round()).all().float()
            parts = [binary, whole, _between(_samples(tensor))]
            into.add(
                ("target.binary_share", "target.integral", "target.between"), torch.stack(parts)
            )
    if together and len(there) == 2:
        _of_pairs(into, operands, *elements)


def _of_numbers(into: Numbers, of: tuple[str, ...], elements: torch.Tensor) -> None:
    """(names, elements) -> range, moments and different values of each."""
    low, high = elements.aminmax(dim=1)
    ordered = elements[:, :: _stride(elements.shape[1], FEW)].sort(1).values
    parts = {
        "min": low,
        "max": high,
        "mean": elements.mean(1),
        "std": elements.std(1, correction=0),
        "distinct": (ordered[:, 1:] != ordered[:, :-1]).sum(1) + 1,
    }
    for name, numbers in parts.items():
        into.add(tuple(f"{side}.{name}" for side in of), numbers)


def _of_pairs(into: Numbers, operands: Operands, first: torch.Tensor, second: torch.Tensor) -> None:
    if operands.space in {LOGITS, PROBABILITIES}:
        guessed = first > (0.0 if operands.space == LOGITS else 0.5)
        wanted = second > 0.5
        shares = torch.stack([guessed, wanted]).float().mean(1)
        entropies = torch.special.entr(shares) + torch.special.entr(1 - shares)
        both = ("prediction", "target")
        into.add(("accuracy",), (guessed == wanted).float().mean().reshape(1))
        into.add(tuple(f"{of}.positive_share" for of in both), shares)
        into.add(tuple(f"{of}.class_entropy" for of in both), entropies)
    centred, other = first - first.mean(), second - second.mean()
    size = (centred.square().sum() * other.square().sum()).sqrt()
    alike = torch.where(size == 0, 0.0, (centred * other).sum() / size)
    error = (first - second).abs().mean()
    number = torch.full_like(error, len(first))
    into.add(("correlation", "error", "elements"), torch.stack([alike, error, number]))


def _of_given(into: Numbers, given: torch.Tensor, classes: int | None) -> None:
    """What a log_softmax was given: probabilities have rows that sum to 1, within 0 and 1."""
    if classes is None or given.dim() <= classes:
        into.add(("given.min", "given.max"), torch.stack(_elements(given).aminmax()))
        return
    rows = _rows(given, classes, given.shape[classes]).float()
    into.add(("given.min", "given.max"), torch.stack(rows.aminmax()))
    into.add("row_sums", torch.stack(rows.sum(-1).aminmax()))


# -- samples --------------------------------------------------------------------------------------


def _stride(have: int, want: int) -> int:
    return max(1, -(-have // max(want, 1)))


def _rows(tensor: torch.Tensor, dim: int, classes: int) -> torch.Tensor:
    """(samples …, classes, positions …) -> (rows, classes): every so-many-th sample and position.

    There are about as many rows as make `SAMPLE` elements. Only these are looked up: `reshape`
    would copy all of a tensor that is expanded or transposed.
    """
    samples, positions = math.prod(tensor.shape[:dim]), math.prod(tensor.shape[dim + 1 :])
    step = _stride(samples * positions, SAMPLE // max(classes, 1))
    along = min(step, positions)
    apart = -(-step // along)
    width = tensor.shape[dim]
    if tensor.is_contiguous():
        grid = tensor.view(samples, width, positions)[::apart, :, ::along].movedim(1, -1)
        return grid.reshape(-1, width)
    outer = torch.arange(0, samples, apart, device=tensor.device)
    inner = torch.arange(0, positions, along, device=tensor.device)
    both = [indices.flatten() for indices in torch.meshgrid(outer, inner, indexing="ij")]
    before = digits(both[0], tensor.shape[:dim])
    after = digits(both[1], tensor.shape[dim + 1 :])
    if not (before or after):
        return tensor.unsqueeze(0)
    # The indices go first, and what they leave out, the classes, comes last.
    return looked_up(tensor.movedim(dim, -1), (*before, *after))


def _elements(tensor: torch.Tensor) -> torch.Tensor:
    return sampled(tensor, SAMPLE, step=_stride(tensor.numel(), SAMPLE)).float()


def _samples(tensor: torch.Tensor) -> torch.Tensor:
    """(samples, features): up to 64 samples of up to 256 features."""
    if tensor.dim() == 0:
        return tensor.reshape(1, 1).float()
    few = tensor[:: _stride(len(tensor), 64)]
    features = few.numel() // max(len(few), 1)
    return sampled(few, 256, dim=1, step=_stride(features, 256)).float()


def _row_sums(into: Numbers, of: str, tensor: torch.Tensor) -> None:
    """The least and greatest sum over dimension 1, where there is one."""
    if tensor.dim() < 2 or not 1 < tensor.shape[1] <= SAMPLE:
        return
    sums = _rows(tensor, 1, tensor.shape[1]).float().sum(-1)
    into.add("row_sums" if of == "prediction" else f"{of}.row_sums", torch.stack(sums.aminmax()))


def _between(samples: torch.Tensor) -> torch.Tensor:
    """The variance between samples, place by place; the mean of all places. NaN of one sample."""
    if len(samples) < 2:
        return samples.new_full((), math.nan)
    return samples.var(0).mean()


def _spread(samples: torch.Tensor) -> torch.Tensor:
    """How much samples differ: the root of their mean variance, by the root mean square of all."""
    size = samples.square().mean()
    return torch.where(size == 0, 0.0, (samples.var(0, correction=0).mean() / size).sqrt())
