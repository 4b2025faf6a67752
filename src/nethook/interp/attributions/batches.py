"""How many rows share a run: as many as fit a share of memory, by what one row keeps.

And which of them are this process's, where several share the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import torch

from nethook.extracting.progress import Bar
from nethook.hooks.autograd.saved_bytes import saved_bytes
from nethook.interp.attributions.subject import Subject
from nethook.interp.sweeping.chunks import free_memory
from nethook.interp.sweeping.ranks import Ranks

ValueOf: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

_SHARE_OF_MEMORY = 0.25
_ON_CPU = 32_000_000  # bytes: more at once is not faster there
_FEW = 4  # rows that are not worth a measurement
_MOST = 4096


def rows_per_run(subject: Subject, count: int) -> int:
    """How many of `count` rows run together, from what a forward of one row keeps for backward.

    A target that is a function sees all rows of the batch in their order: then it is a multiple of
    them.
    """
    whole = subject.target.whole
    unit = subject.rows if whole else 1
    if count <= max(_FEW, unit):
        return max(count, unit)
    which = torch.arange(unit)
    apart = [*subject.model.parameters(), *subject.model.buffers()]
    with saved_bytes(apart) as saved:
        subject.gradients(subject.value[:unit], which)
    each = max(saved.total, subject.value[:unit].nbytes, 1) / unit
    room = _SHARE_OF_MEMORY * free_memory(subject.value.device)
    if subject.value.device.type == "cpu":
        room = min(room, _ON_CPU)
    fitting = max(1, min(_MOST, int(room / each)))
    return max(unit, fitting // unit * unit)


class Gradients(NamedTuple):
    """What one run gave: rows, which variant of each it was, and the gradients."""

    which: torch.Tensor
    variant: torch.Tensor
    grads: torch.Tensor


def gradients_of_variants(
    subject: Subject, rows: torch.Tensor, variants: int, value: ValueOf, per_run: int, bar: Bar
) -> Iterator[Gradients]:
    """Gradients at `variants` values for each of some rows, many per run.

    `value(which, variant)` gives the values of so many rows and variants at once.
    """
    which = rows.repeat(variants)
    variant = torch.arange(variants).repeat_interleave(len(rows))
    for start in range(0, len(which), per_run):
        part = slice(start, start + per_run)
        _, grads = subject.gradients(value(which[part], variant[part]), which[part])
        yield Gradients(which[part], variant[part], grads)
        bar.advance(len(which[part]))


def runs_of(rows: int, per_run: int) -> int:
    """How many runs so many rows take."""
    return -(-rows // per_run)


class Shared:
    """The rows that this process explains, where the ranks of torchrun share them."""

    def __init__(self, subject: Subject, *, spread: bool) -> None:
        self._subject = subject
        self._ranks = Ranks(spread=spread)
        everything = torch.arange(subject.rows)
        self._alone = self._ranks.count == 1 or subject.target.whole
        self.rows = everything if self._alone else everything[self._ranks.rank :: self._ranks.count]

    def whole(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor (rows, …) with every row as the process found it whose row it is."""
        if self._alone:
            return tensor
        mine = torch.zeros_like(tensor)
        mine[self.rows] = tensor[self.rows]
        return self._ranks.summed(mine).to(tensor.device, tensor.dtype)
