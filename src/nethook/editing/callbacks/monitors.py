"""What the ready-made callbacks give back: statistics of activations, and units that are dead.

A module may be called several times in a forward (one `nn.ReLU` for the whole network), and its
calls are then as different as layers are. A monitor keeps them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.addresses.suggest import listing
from nethook.errors import NoSuchSiteError, OptionError
from nethook.kinds.modules import unit_dim
from nethook.stats.native import readable
from nethook.stats.rows import Rows, Slot
from nethook.stats.torch_kernel import number_type, read_once

_Kept = TypeVar("_Kept")


class Forwards:
    """Tells whether a forward of the model is under way, and which one."""

    def __init__(self) -> None:
        self.number = 0
        self.running = False


class Monitor(Generic[_Kept]):
    """What was seen at each site, and for a site with several calls in a forward, at each call.

    `monitor["conv1"]` is what was seen at `conv1`; where a module is called twice in a forward it
    is `monitor["relu, call 0"]` and `monitor["relu, call 1"]`.
    """

    def __init__(self, forwards: Forwards) -> None:
        self._forwards = forwards
        self._seen: dict[str, dict[int, _Kept]] = {}  # site -> call in a forward -> what was seen
        self._now: dict[str, tuple[int, int]] = {}  # site -> (forward, calls in it so far)

    def __call__(self, output: Any, site: str) -> None:
        """Takes in one output: the first tensor in it."""
        held = tensors(output)
        if held:
            calls = self._seen.setdefault(site, {})
            call = self._call(site)
            calls[call] = self._fold(calls.get(call), held[0][1].detach(), site)

    def _call(self, site: str) -> int:
        if not self._forwards.running:
            return 0  # called on its own: there is no forward to count in
        forward, calls = self._now.get(site, (-1, 0))
        call = calls if forward == self._forwards.number else 0
        self._now[site] = (self._forwards.number, call + 1)
        return call

    def _fold(self, so_far: _Kept | None, value: torch.Tensor, site: str) -> _Kept:
        raise TypeError(f"{type(self).__name__} is not a monitor by itself")

    def __iter__(self) -> Iterator[str]:
        for site, calls in self._seen.items():
            yield from [site] if len(calls) == 1 else [f"{site}, call {call}" for call in calls]

    def __len__(self) -> int:
        """How many sites, or calls of them, were seen."""
        return sum(len(calls) for calls in self._seen.values())

    def _kept(self, name: str) -> _Kept:
        for label, kept in zip(self, self._all(), strict=True):
            if label == name:
                return kept
        seen = f"Seen: {listing(self)}." if len(self) else "Nothing has been seen yet."
        raise NoSuchSiteError(f"nothing was seen at {name!r}. {seen}")

    def _all(self) -> Iterator[_Kept]:
        for calls in self._seen.values():
            yield from calls.values()

    def reset(self) -> None:
        """Forgets everything and begins a new window."""
        self._seen.clear()
        self._now.clear()


class ActivationStats(Monitor[list[torch.Tensor]]):
    """Mean, standard deviation, minimum and maximum of each output, forward by forward.

    `stats["conv1"]["mean"]` is a list of numbers. Values stay on their device until they are read:
    collecting them does not wait for it.
    """

    NAMES = ("mean", "std", "min", "max")

    def _fold(
        self, so_far: list[torch.Tensor] | None, value: torch.Tensor, site: str
    ) -> list[torch.Tensor]:
        rows = [] if so_far is None else so_far
        if value.numel() and readable.is_readable(value):
            rows.append(_numbers(value))
        return rows

    def __getitem__(self, name: str) -> dict[str, list[float]]:
        """The statistics of one site (or call of it), by name."""
        rows = self._kept(name)
        columns = torch.stack(rows).T.tolist() if rows else [[] for _ in self.NAMES]
        return dict(zip(self.NAMES, columns, strict=True))

    def __repr__(self) -> str:
        return f"<statistics of {', '.join(self) or 'nothing yet'}>"


def _numbers(value: torch.Tensor) -> torch.Tensor:
    """Mean, standard deviation, minimum and maximum, still on the device."""
    elements = value.numel()
    read = read_once(value)  # an expanded tensor may be larger than any memory
    stored = read.values.to(number_type(value.device))
    if read.counts is None:
        mean, low, high = stored.mean(), *torch.aminmax(stored)
        squares = (stored - mean).square().sum() * read.times
    else:
        counts, there = read.counts * read.times, read.counts > 0
        mean = torch.where(there, stored * counts, 0).sum() / elements
        low = torch.where(there, stored, torch.inf).amin()
        high = torch.where(there, stored, -torch.inf).amax()
        squares = torch.where(there, (stored - mean).square() * counts, 0).sum()
    return torch.stack([mean, (squares / max(elements - 1, 1)).sqrt(), low, high])


class DeadUnits(Monitor[Slot]):
    """Which units were zero in every element since the last `reset()`.

    A dead unit is zero over a whole window, for every sample and position; a zero in one batch
    is not that, and a unit that is always below zero is alive (see `nethook.kinds.modules`).
    `monitor["relu1"]` is a tensor of True for each unit that is dead.

    Arguments:
        forwards: which forward is under way.
        unit_dim: the dimension of the units; None: what the kind of the module says.
        module_at: the module at a site; None for an operation.
    """

    def __init__(
        self,
        forwards: Forwards,
        unit_dim: int | None,
        module_at: Callable[[str], nn.Module | None] = lambda _: None,
    ) -> None:
        super().__init__(forwards)
        self._unit_dim = unit_dim
        self._module_at = module_at

    def _fold(self, slot: Slot | None, value: torch.Tensor, site: str) -> Slot:
        value = torch.atleast_1d(value)
        if slot is None:
            dim = self._unit_dim
            if dim is None:
                dim = unit_dim(self._module_at(site), value.dim())
            elif not -value.dim() <= dim < value.dim():
                raise OptionError(
                    f"`unit_dim` must be a dimension of the output of {site!r}, which has "
                    f"{value.dim()}; got {dim}."
                )
            slot = Rows(1).slot(0, unit_dim=dim, histogram=False)
        slot.fold(value)
        return slot

    def __getitem__(self, name: str) -> torch.Tensor:
        """For each unit of a site (or call of it), whether it is dead."""
        slot = self._kept(name)
        slot.rows.collect()
        bits = slot.bits if slot.bits is not None else np.zeros(0, np.uint8)
        return torch.from_numpy(bits == 0)

    def share(self, name: str) -> float:
        """The share of a site's units that are dead."""
        return float(self[name].float().mean())

    def __repr__(self) -> str:
        rows = (f"{name}: {int(self[name].sum())} of {len(self[name])}" for name in self)
        return f"<dead units, {', '.join(rows) or 'nothing seen'}>"
