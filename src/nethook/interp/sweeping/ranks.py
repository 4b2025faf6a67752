"""A sweep over several processes: each runs its share of the chunks, and all get the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import distributed

from nethook.errors import SweepError

T = TypeVar("T")


class Ranks:
    """This process among those that share a sweep; alone, where `spread` is off."""

    def __init__(self, *, spread: bool) -> None:
        on = distributed.is_available() and distributed.is_initialized()
        if spread and not on:
            raise SweepError(
                "`spread` needs the processes of torchrun: call "
                "torch.distributed.init_process_group first, and sweep on every rank."
            )
        self.count = distributed.get_world_size() if spread else 1
        self.rank = distributed.get_rank() if spread else 0

    def share(self, chunks: Sequence[T]) -> list[T]:
        """The chunks of this rank, taken by turns: early sites take longest."""
        return list(chunks[self.rank :: self.count])

    def least(self, number: int) -> int:
        """The least of the numbers of all ranks: they must agree on it."""
        return int(self._reduced(torch.tensor(float(number)), distributed.ReduceOp.MIN))

    def greatest(self, number: float) -> float:
        """The greatest of the numbers of all ranks."""
        one = torch.tensor(number, dtype=torch.double)
        return float(self._reduced(one, distributed.ReduceOp.MAX))

    def total(self, number: int) -> int:
        """The sum over all ranks."""
        return int(self._reduced(torch.tensor(float(number)), distributed.ReduceOp.SUM))

    def summed(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over all ranks, number by number."""
        return self._reduced(tensor.double(), distributed.ReduceOp.SUM)

    def agreed(self, names: tuple[list[str], list[str]]) -> tuple[list[str], list[str]]:
        """Names that a rank has found, for those that had nothing to find them in."""
        if self.count == 1:
            return names
        every: list[tuple[list[str], list[str]] | None] = [None] * self.count
        distributed.all_gather_object(every, names)
        return next((each for each in every if each is not None and each[0]), names)

    def merged(self, values: torch.Tensor, done: torch.Tensor) -> None:
        """Puts together what each rank has measured, (sites, cells, rows) and (sites, cells)."""
        if self.count > 1:
            # As bits: sums with NaN would lose numbers, and every cell is measured by one rank.
            measured = torch.where(done[..., None], values.double(), 0.0)
            gaps = torch.where(done[..., None] & values.isnan(), 1.0, 0.0).double()
            total = self._reduced(measured.nan_to_num(), distributed.ReduceOp.SUM)
            gaps = self._reduced(gaps, distributed.ReduceOp.SUM)
            everywhere = self._reduced(done.double(), distributed.ReduceOp.SUM) > 0
            total = torch.where(gaps > 0, torch.nan, total)
            values.copy_(torch.where(everywhere[..., None], total, torch.nan).to(values.dtype))
            done.copy_(everywhere)

    def _reduced(self, tensor: torch.Tensor, how: distributed.ReduceOp.RedOpType) -> torch.Tensor:
        if self.count == 1:
            return tensor
        home = tensor.cuda() if distributed.get_backend() == "nccl" else tensor.clone()
        distributed.all_reduce(home, how)
        return home.cpu()
