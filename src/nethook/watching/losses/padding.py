"""How much of what a loss is taken of is padding.

Sequences of a batch are made equally long by a value that is repeated at their ends, in inputs and
targets alike. A class that is merely frequent is not: the inputs under it differ. So a position
counts as padding where the input repeats its last (or first) value up to the end of the row, that
value is the same one in most rows, and the target there is one class.

Frames of numbers, as of a sound, may be padded in the targets alone. There a position counts where
the target repeats one number up to the end of its row, and only padding looks like that: the row
that is longest has none, the others end at different places, and no frame before is like it. Zeros
of a series that are values stand anywhere, and the border of pictures is in all of them.
"""

from __future__ import annotations

from typing import Final

import torch

from nethook.hooks.modes import unrecorded
from nethook.stats.shards import is_shared
from nethook.watching.losses.kinds import LOGITS, PROBABILITIES, Operands

SHORT: Final = 4
"""Shorter sequences are not looked at."""
_ROWS: Final = 4
"""Fewer sequences do not show what they have in common."""
LARGE: Final = 1 << 20
"""Elements of an input from which on it is not looked at."""

NAMES: Final = tuple(
    f"padding.{name}"
    for name in ("share", "target", "accuracy", "accuracy_elsewhere", "ignored", "real")
)


@unrecorded
def padding_numbers(inputs: list[torch.Tensor], operands: Operands) -> torch.Tensor | None:
    """The numbers of `NAMES`, or None where no input has a position for each target.

    Arguments:
        inputs: what the model was given.
        operands: of a loss that leaves no position out but those of `ignore`.

    Returns:
        the share of padding among targets that count; the class that it has; how much of it, and of
        the rest, is predicted rightly; the share of padding that is left out; how many of the
        targets that count are no padding.
    """
    target = operands.target
    if target is None or is_shared(target) or target.layout is not torch.strided:
        return None
    if target.numel() > LARGE or target.is_complex():
        return None
    if (numbers := _of_frames(target, operands.prediction)) is not None:
        return numbers
    found = [
        repeated
        for given in _with_shorter(inputs, target)
        for along in (1, 0)
        if (repeated := _repeated(given, along, target)) is not None
    ]
    if not found:
        return None
    guesses = _guesses(operands, target)
    best: torch.Tensor | None = None
    for repeated in found:
        numbers = _numbers(repeated, target, guesses, operands.ignore)
        # Of several inputs the one that is padded most.
        best = numbers if best is None else torch.where(numbers[0] > best[0], numbers, best)
    return best


def _with_shorter(inputs: list[torch.Tensor], target: torch.Tensor) -> list[torch.Tensor]:
    """The inputs, and those that are one step longer than their targets without the last step.

    A model that shifts its tokens by itself is given the whole sequence.
    """
    # A cross entropy of (samples, classes, steps) has an axis of its own between the two.
    axes = [size for size in target.shape if size != 1]
    if len(axes) != 2:
        return inputs
    longer = [
        given[:, :-1]
        for given in inputs
        if given.dim() >= 2
        and given.layout is torch.strided
        and tuple(given.shape[:2]) == (axes[0], axes[1] + 1)
    ]
    return [*inputs, *longer]


def _of_frames(target: torch.Tensor, prediction: torch.Tensor | None) -> torch.Tensor | None:
    """The same for (rows, frames, features) of numbers; None where the target is none of that."""
    if target.dim() != 3 or not target.is_floating_point() or prediction is None:
        return None
    rows, frames, features = target.shape
    if prediction.shape != target.shape or rows < _ROWS or frames < SHORT or features < 2:
        return None
    flat = target.reshape(rows, -1)
    value = flat[:, -1].sort().values[rows // 2]
    same = (target == value).all(-1)  # (rows, frames)
    pads = same.to(torch.uint8).flip(1).cummin(1).values.flip(1).bool()
    long = pads.sum(1)
    # All of it at once, as a number: nothing is waited for. A row may be all silent by itself.
    padded = (
        (long.min() == 0) & (long.max() < frames) & ((same & ~pads).sum() <= frames * rows // 100)
    )
    apart = (long.sort().values.diff() > 0).sum() >= 2
    share = torch.where(padded & apart, pads.float().mean(), 0.0)
    unknown = torch.full_like(share, float("nan"))
    nothing = torch.zeros_like(share)
    numbers = [share, value, unknown, unknown, nothing, (~pads).sum()]
    return torch.stack([number.float() for number in numbers])


def _guesses(operands: Operands, target: torch.Tensor) -> torch.Tensor | None:
    prediction = operands.prediction
    if prediction is None or prediction.numel() > 16 * LARGE or is_shared(prediction):
        return None
    if operands.classes is not None and target.dim() < prediction.dim():
        return prediction.argmax(operands.classes)
    if operands.space in (LOGITS, PROBABILITIES) and prediction.shape == target.shape:
        return (prediction > (0.0 if operands.space == LOGITS else 0.5)).float()
    return None


def _repeated(given: torch.Tensor, along: int, target: torch.Tensor) -> torch.Tensor | None:
    """Which positions of an input, in the order of the targets, repeat the end of their row."""
    if given.dim() < 2 or given.numel() > LARGE or given.layout is not torch.strided:
        return None
    if given.device != target.device or given.is_complex() or given.is_quantized:
        return None
    # Pixels of an image in one row are no sequence: its black border is not padding.
    if given.is_floating_point() and given.dim() < 3:
        return None
    positions = given.shape[0] * given.shape[1]
    if positions != target.numel() or given.shape[along] < SHORT or given.shape[1 - along] < 2:
        return None
    flat = given.reshape(given.shape[0], given.shape[1], -1)
    rows = flat if along == 1 else flat.transpose(0, 1)
    found = torch.maximum(_ends(rows), _ends(rows.flip(1)).flip(1)).bool()
    return (found if along == 1 else found.transpose(0, 1)).reshape(-1)


def _ends(rows: torch.Tensor) -> torch.Tensor:
    """(rows, positions, features) -> which positions are the same up to the end of the row."""
    last = rows[:, -1:]
    same = (rows == last).all(-1).to(torch.uint8).flip(1).cummin(1).values.flip(1)
    long = same.sum(1) >= 2
    # The value that most of the rows end in; those that end in another one are not padded.
    ends = rows[:, -1].float()
    usual = ends.sort(0).values[len(ends) // 2]
    pads = long & (ends == usual).all(-1)
    return same * pads[:, None].to(torch.uint8)


def _numbers(
    repeated: torch.Tensor, target: torch.Tensor, guesses: torch.Tensor | None, ignore: int | None
) -> torch.Tensor:
    labels = target.reshape(-1).float()
    counts = torch.ones_like(repeated) if ignore is None else labels != ignore
    padded = repeated & counts
    value = labels.masked_fill(~padded, float("nan")).nanmedian()
    padded = padded & (labels == value)
    real = counts & ~padded
    numbers = [padded.sum() / counts.sum().clamp(min=1), value]
    if guesses is None:
        numbers += [torch.full_like(value, float("nan"))] * 2
    else:
        right = guesses.reshape(-1) == labels
        numbers += [
            (right & padded).sum() / padded.sum().clamp(min=1),
            (right & real).sum() / real.sum().clamp(min=1),
        ]
    left_out = (repeated & ~counts).sum() / repeated.sum().clamp(min=1)
    numbers += [left_out, real.sum()]
    return torch.stack([number.float() for number in numbers])
