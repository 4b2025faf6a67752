"""What the ready-made callbacks give back: statistics of activations, and units that are dead.

A module may be called several times in a forward (one `nn.ReLU` for the whole network), and its
calls are then as different as layers are. A monitor keeps them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import torch

from nethook.addresses.nested import tensors
from nethook.addresses.suggest import listing
from nethook.errors import NoSuchSiteError

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
        found = tensors(output)
        if found:
            calls = self._seen.setdefault(site, {})
            call = self._call(site)
            calls[call] = self._fold(calls.get(call), found[0][1].detach())

    def _call(self, site: str) -> int:
        if not self._forwards.running:
            return 0  # called on its own: there is no forward to count in
        forward, calls = self._now.get(site, (-1, 0))
        call = calls if forward == self._forwards.number else 0
        self._now[site] = (self._forwards.number, call + 1)
        return call

    def _fold(self, known: _Kept | None, value: torch.Tensor) -> _Kept:
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

    def _fold(self, known: list[torch.Tensor] | None, value: torch.Tensor) -> list[torch.Tensor]:
        rows = [] if known is None else known
        if value.numel():
            value = value.abs() if value.is_complex() else value
            value = value if value.dtype == torch.float64 else value.float()
            low, high = torch.aminmax(value)
            std = value.std() if value.numel() > 1 else torch.zeros_like(low)
            rows.append(torch.stack([value.mean(), std, low, high]))
        return rows

    def __getitem__(self, name: str) -> dict[str, list[float]]:
        """The statistics of one site (or call of it), by name."""
        rows = self._kept(name)
        columns = torch.stack(rows).T.tolist() if rows else [[] for _ in self.NAMES]
        return dict(zip(self.NAMES, columns, strict=True))

    def __repr__(self) -> str:
        return f"<statistics of {', '.join(self) or 'nothing yet'}>"


class DeadUnits(Monitor[torch.Tensor]):
    """Which units were never above zero since the last `reset()`.

    A dead unit is silent over a whole window, for every sample and position; a zero in one batch
    is not that. `monitor["relu1"]` is a tensor of True for each unit that is dead.
    """

    def __init__(self, forwards: Forwards, unit_dim: int | None) -> None:
        super().__init__(forwards)
        self._unit_dim = unit_dim

    def _fold(self, known: torch.Tensor | None, value: torch.Tensor) -> torch.Tensor:
        dim = self._unit_dim
        if dim is None:
            dim = 1 if value.ndim >= 4 else -1  # channels of images; features of anything else
        active: torch.Tensor = torch.atleast_1d(value > 0).movedim(dim, 0)
        if active.ndim > 1:
            active = active.flatten(1).any(1)
        return active if known is None else known | active

    def __getitem__(self, name: str) -> torch.Tensor:
        """For each unit of a site (or call of it), whether it is dead."""
        return ~self._kept(name)

    def share(self, name: str) -> float:
        """The share of a site's units that are dead."""
        return float(self[name].float().mean())

    def __repr__(self) -> str:
        rows = (f"{name}: {int(self[name].sum())} of {len(self[name])}" for name in self)
        return f"<dead units, {', '.join(rows) or 'nothing seen'}>"
