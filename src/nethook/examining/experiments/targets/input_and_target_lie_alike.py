"""Input and target lie alike: a map of targets is not turned or mirrored against its picture.

Experiment: the model has no part in it. From what the picture shows around a place, the target of
that place is predicted by least squares, on half of the samples, and scored on the others; then the
same with the target turned and mirrored. Where another layout fits far better, that is how the
target lies. And with what was learnt as they lie, each sample is scored both ways: where many fit
better mirrored, and many do not, pictures and targets were mirrored each by itself.

Meaning: (width, height) for (height, width); a random flip of the picture that its mask has not,
or has by another throw of the coin.

Cost: a few systems of equations of at most 200 unknowns; no pass of the model.

Does not apply: where there is no picture of numbers, or no map of targets of the same size, and
where the target is the picture itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch.nn import functional as F

from nethook.examining.experiment import Result, fine, found, not_applicable
from nethook.examining.probes.batch_axis import is_whole, tensors_of
from nethook.examining.probes.source import line_of_loss
from nethook.examining.rehearsal import Rehearsal

FEWEST_SAMPLES: Final = 8
FEWEST_PLACES: Final = 6
MOST_CHANNELS: Final = 12
MOST_CLASSES: Final = 24
MOST_ROWS: Final = 1 << 14
"""Places that are looked at, of all samples together."""
LEAST: Final = 0.1
"""Share of the targets' variance that a layout must explain."""
OFTEN: Final = 0.25
"""Share of samples that must fit better in either way, where each was mirrored by itself."""
BETTER: Final = 0.9
"""Error of a sample in one layout by that in the other: below this it fits better."""

_LAYOUTS: Final[dict[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "transposed": lambda maps: maps.transpose(2, 3),
    "mirrored left to right": lambda maps: maps.flip(3),
    "upside down": lambda maps: maps.flip(2),
    "turned by half a circle": lambda maps: maps.flip(2, 3),
}


class InputAndTargetLieAlike:
    """See the module."""

    name = "input and target lie alike"
    turn = 1

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        if _pair(rehearsal) is None:
            return "there are no pictures with a map of targets each"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """All of the layout first, then sample by sample."""
        pair = _pair(rehearsal)
        if pair is None:
            return not_applicable(self, "there are no pictures with a map of targets each")
        pictures, maps = pair
        if pictures.shape == maps.shape and torch.equal(pictures, maps):
            return not_applicable(self, "the target is the picture itself")
        with torch.no_grad():
            told = _layout(pictures, maps)
        lines = [line for line in (line_of_loss(rehearsal),) if line]
        outcome = found if told["how"] else fine
        return outcome(self, samples=len(maps), lines=lines, **told)


def _pair(rehearsal: Rehearsal) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Pictures (samples, channels, height, width), and maps of targets that lie in the same way."""
    target = rehearsal.recorded.target
    if target is None or target.is_complex() or target.layout is not torch.strided:
        return None
    for _, tensor in tensors_of(rehearsal.inputs):
        if (
            tensor.dim() != 4
            or not tensor.is_floating_point()
            or tensor.layout is not torch.strided
            or len(tensor) < FEWEST_SAMPLES
            or tensor.size(1) > MOST_CHANNELS
            or min(tensor.shape[2:]) < FEWEST_PLACES
        ):
            continue
        maps = _maps(target.detach(), tensor)
        if maps is not None and bool(maps.isfinite().all()):
            return tensor.detach().double().cpu(), maps.double().cpu()
    return None


def _maps(target: torch.Tensor, pictures: torch.Tensor) -> torch.Tensor | None:
    """The target as (samples, channels, height, width); None where it has no such places."""
    samples, (height, width) = len(pictures), pictures.shape[2:]
    if target.numel() == samples * height * width:
        plain = target.reshape(samples, height, width)
        if not is_whole(target):
            return plain[:, None].float()
        classes = int(plain.max()) + 1
        if int(plain.min()) < 0 or not 2 <= classes <= MOST_CLASSES:
            return None
        return F.one_hot(plain.long(), classes).movedim(3, 1).float()
    if target.dim() != 4 or is_whole(target) or len(target) != samples:
        return None
    if tuple(target.shape[2:]) == (height, width):
        maps = target
    elif tuple(target.shape[1:3]) == (height, width):
        maps = target.movedim(3, 1)
    else:
        return None
    return maps.float() if maps.size(1) <= MOST_CLASSES else None


def _layout(pictures: torch.Tensor, maps: torch.Tensor) -> dict[str, Any]:
    """How maps lie against pictures: `how` is "" where both lie alike."""
    around = F.pad(pictures, (1, 1, 1, 1), mode="replicate")
    seen = F.unfold(around, 3)  # (samples, 9 * channels, places)
    maps = maps - maps.mean(0)  # what a place has in all samples tells nothing of their layout
    own, weights = _explained(seen, maps)
    facts = {"own": own, "how": "", "explained": own}
    square = maps.size(2) == maps.size(3)
    others = {
        name: _explained(seen, turn(maps))[0]
        for name, turn in _LAYOUTS.items()
        if square or name != "transposed"
    }
    best = max(others, key=lambda name: others[name])
    if others[best] > max(LEAST, 2 * own + 0.05):
        return {**facts, "how": best, "explained": others[best], "each": False}
    if weights is None:
        return facts
    # Of a sample whose map is empty nothing can be told.
    energy = maps.square().sum((1, 2, 3))
    telling = energy > 0.5 * energy.mean()
    if int(telling.sum()) < FEWEST_SAMPLES:
        return facts
    seen, maps = seen[telling], maps[telling]
    errors = _errors(seen, maps, weights)
    for name in ("mirrored left to right", "upside down"):
        turned = _errors(seen, _LAYOUTS[name](maps), weights)
        better = float((turned < BETTER * errors).double().mean())
        worse = float((errors < BETTER * turned).double().mean())
        if better >= OFTEN and worse >= OFTEN:
            return {**facts, "how": name, "each": True, "share": better}
    return facts


def _explained(seen: torch.Tensor, maps: torch.Tensor) -> tuple[float, torch.Tensor | None]:
    """Share of the variance of one half that is explained from the other; and by which weights."""
    rows, targets = _table(seen[::2], maps[::2])
    weights = _solved(rows, targets)
    if weights is None:
        return 0.0, None
    rows, targets = _table(seen[1::2], maps[1::2])
    spread = (targets - targets.mean(0)).square().sum()
    if not float(spread) > 1e-12:
        return 0.0, None
    left = (targets - rows @ weights).square().sum()
    return max(0.0, 1 - float(left / spread)), weights


def _table(seen: torch.Tensor, maps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One row per place: what is seen around it and a one; and its targets."""
    rows = seen.transpose(1, 2).reshape(-1, seen.size(1))
    targets = maps.flatten(2).transpose(1, 2).reshape(-1, maps.size(1))
    every = max(1, len(rows) // MOST_ROWS) | 1  # odd: no grid of places that repeats itself
    rows, targets = rows[::every], targets[::every]
    return torch.cat([rows, torch.ones(len(rows), 1, dtype=rows.dtype)], 1), targets


def _solved(rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor | None:
    square = rows.T @ rows
    size = float(square.diagonal().mean())
    if not size > 0:
        return None
    steady = square + 1e-4 * size * torch.eye(len(square), dtype=square.dtype)
    solved: torch.Tensor = torch.linalg.solve(steady, rows.T @ targets)
    return solved


def _errors(seen: torch.Tensor, maps: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Of each sample, how far its targets are from what is seen around them."""
    ones = torch.ones(len(seen), 1, seen.size(2), dtype=seen.dtype)
    said = torch.cat([seen, ones], 1).transpose(1, 2) @ weights
    wanted = maps.flatten(2).transpose(1, 2)
    return (said - wanted).square().sum((1, 2))
