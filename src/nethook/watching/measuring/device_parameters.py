"""Parameters that lie on a device: numbers of all of them, computed there.

On CPU a native kernel gives norms, cosines and fingerprints beside the summaries. On another device
each such number would make the host wait. So they stay tensors there, a few operations per step for
all parameters together, until a window ends and everything is fetched in one copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from nethook.runs.names import GRAD_NORM, UPDATE_COSINE, UPDATE_RATIO
from nethook.stats.native import readable
from nethook.stats.sampling import both_parts, sampled
from nethook.stats.tables import SAMPLE
from nethook.stats.torch_kernel import number_type
from nethook.torch_private import norms
from nethook.watching.journal import Journal
from nethook.watching.measuring.parameter_facts import ParameterFacts

MARKED: Final = 1 << 20
"""Elements of a tensor that its fingerprint is taken of."""
_BITS: Final = (1 << 52) - 1
_INTEGERS: Final = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def is_away(tensor: torch.Tensor) -> bool:
    """Whether a tensor lies on a device that the host would have to wait for."""
    return tensor.device.type not in ("cpu", "meta")


class Away:
    """The parameters of a set that lie on one device.

    Arguments:
        journal: where their numbers go.
        facts: of each, in order.
    """

    def __init__(self, journal: Journal, facts: Sequence[ParameterFacts]) -> None:
        self._journal = journal
        self._facts = list(facts)
        self.device = facts[0].local.device
        self._type = number_type(self.device)
        self._parts = self._tensor([float(parameter.part.parts) for parameter in facts])
        self.grad_square: torch.Tensor | None = None
        self.weight_square: torch.Tensor | None = None
        self.update_square: torch.Tensor | None = None
        self._moved: torch.Tensor | None = None
        self._measured = 0
        self._now: torch.Tensor | None = None  # the sample at the last look
        self._move: torch.Tensor | None = None  # how it moved before that
        self._looked_at = -2
        self._rows = [
            journal.row(parameter.address, UPDATE_COSINE, parameter.info(journal.options.world))
            for parameter in facts
        ]

    def weights(self) -> None:
        """The weights before a step."""
        self.weight_square = self._square([parameter.local.detach() for parameter in self._facts])

    def gradients(self, factor: float) -> None:
        """The gradients that a step will use."""
        there = [
            (index, grad)
            for index, parameter in enumerate(self._facts)
            if (grad := parameter.grad) is not None
        ]
        dense = [(index, grad) for index, grad in there if grad.layout is torch.strided]
        if not dense or len(dense) < len(there):
            self.grad_square = None
            return
        parts = (
            self._parts[[index for index, _ in dense]] if len(dense) < len(self._facts) else None
        )
        square = self._square([grad.detach() for _, grad in dense], parts)
        self.grad_square = square * factor**2 if factor != 1.0 else square

    def updates(self, changes: Sequence[torch.Tensor]) -> None:
        """What a step has added, of all parameters in order."""
        norms = self._norms(changes)
        self.update_square = (norms.square() * self._parts).sum()
        moved = (norms > 0).to(self._type)
        self._moved = moved if self._moved is None else self._moved + moved
        self._measured += 1

    def look(self, step: int) -> None:
        """Cosines of the last update with the one before, from a sample of coordinates."""
        now = self._sample()
        row, self._looked_at = step == self._looked_at + 1, step
        if self._now is None or not row:
            self._now, self._move = now, None
            return
        move = now - self._now
        if self._move is not None:
            size = move.norm(dim=1) * self._move.norm(dim=1)
            cosines = (move * self._move).sum(1) / size  # NaN where one did not move: not there
            rows = [row for row in self._rows if row is not None]
            if len(rows) == len(self._rows):
                self._journal.train.fold_numbers(rows, cosines)
        self._now, self._move = now, move

    def settle(self) -> tuple[torch.Tensor, Any] | None:
        """How often each parameter moved, and what to call with it once it is known."""
        if self._moved is None:
            return None
        moved, measured = self._moved, self._measured

        def done(numbers: list[float]) -> None:
            for parameter, number in zip(self._facts, numbers, strict=True):
                parameter.moved = [int(number), measured]

        return moved, done

    # -- helpers ------------------------------------------------------------------------------

    def _tensor(self, numbers: list[float]) -> torch.Tensor:
        return torch.tensor(numbers, dtype=self._type).to(self.device, non_blocking=True)

    def _norms(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        real = [tensor.abs() if tensor.is_complex() else tensor for tensor in tensors]
        wide = [tensor if tensor.dtype == torch.float64 else None for tensor in real]
        kind = torch.float64 if any(tensor is not None for tensor in wide) else torch.float32
        return torch.stack(norms(real, 2, dtype=kind)).to(self._type)

    def _square(
        self, tensors: Sequence[torch.Tensor], parts: torch.Tensor | None = None
    ) -> torch.Tensor:
        return (self._norms(tensors).square() * (self._parts if parts is None else parts)).sum()

    def _sample(self) -> torch.Tensor:
        """Up to 64 coordinates of each parameter, a row each."""
        pieces = []
        for parameter in self._facts:
            some = sampled(parameter.local.detach(), SAMPLE // (1 + parameter.local.is_complex()))
            some = both_parts(some.unsqueeze(0)).squeeze(0).to(self._type)
            pieces.append(some)
            if len(some) < SAMPLE:
                pieces.append(some.new_zeros(SAMPLE - len(some)))
        return torch.cat(pieces).view(len(self._facts), SAMPLE)


def device_norms(
    away: Sequence[Away], grads: float, weights: float, updates: float
) -> dict[str, torch.Tensor]:
    """Norms of a step that are still on a device; the squares of what lies on CPU are added."""
    device = away[0].device

    def total(name: str, here: float) -> torch.Tensor | None:
        squares = [getattr(on_device, name) for on_device in away]
        for on_device in away:
            setattr(on_device, name, None)
        if here != here or any(square is None for square in squares):
            return None
        return (
            torch.stack([square.to(device, non_blocking=True) for square in squares]).sum() + here
        )

    grad = total("grad_square", grads)
    weight, update = total("weight_square", weights), total("update_square", updates)
    later = {}
    if grad is not None:
        later[GRAD_NORM] = grad.sqrt()
    if weight is not None and update is not None:
        later[UPDATE_RATIO] = (update / weight).sqrt()
    return later


def device_fingerprint(tensor: torch.Tensor) -> torch.Tensor | None:
    """A whole number that tensors with the same bytes share, still on the device.

    Sums of whole numbers that wrap around are the same in whatever order a device adds them up.
    """
    if readable.kind(tensor) is not None or not tensor.numel():
        return None
    if tensor.is_complex() or tensor.dtype == torch.bool:
        return None
    some = sampled(tensor.detach(), MARKED).view(_INTEGERS[tensor.element_size()]).to(torch.int64)
    positions = torch.arange(1, some.numel() + 1, device=some.device, dtype=torch.int64)
    mixed = (some ^ (some >> 17)) * (2 * positions * 0x5851F42D4C957F2D + 1)
    return (mixed ^ (mixed >> 29)).sum() & _BITS
