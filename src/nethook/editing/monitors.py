"""What the ready-made callbacks give back: statistics of activations, and units that are dead."""

from __future__ import annotations

from typing import Any

import torch

from nethook.addresses.nested import tensors


class ActivationStats:
    """Mean, standard deviation, minimum and maximum of each output, call by call.

    `stats["conv1"]["mean"]` is a list of numbers, one a call. Values stay on their device until
    they are read: collecting them does not wait for it.
    """

    NAMES = ("mean", "std", "min", "max")

    def __init__(self) -> None:
        self._rows: dict[str, list[torch.Tensor]] = {}

    def __call__(self, output: Any, site: str) -> None:
        """Takes in one output: the first tensor in it."""
        found = tensors(output)
        if not found or not found[0][1].numel():
            return
        value = found[0][1].detach()
        value = value.abs() if value.is_complex() else value
        value = value if value.dtype == torch.float64 else value.float()
        low, high = torch.aminmax(value)
        std = value.std() if value.numel() > 1 else torch.zeros_like(low)
        self._rows.setdefault(site, []).append(torch.stack([value.mean(), std, low, high]))

    def __getitem__(self, site: str) -> dict[str, list[float]]:
        """The statistics of one site, by name."""
        columns = torch.stack(self._rows[site]).T.tolist()
        return dict(zip(self.NAMES, columns, strict=True))

    def __iter__(self) -> Any:
        return iter(self._rows)

    def __len__(self) -> int:
        """How many sites were seen."""
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<statistics of {len(self)} sites: {', '.join(self._rows)}>"


class DeadUnits:
    """Which units were never above zero since the last `reset()`.

    A dead unit is silent over a whole window, for every sample and position; a zero in one batch
    is not that. `monitor["relu1"]` is a tensor of True for each unit that is dead.
    """

    def __init__(self, unit_dim: int | None) -> None:
        self._unit_dim = unit_dim
        self._active: dict[str, torch.Tensor] = {}

    def __call__(self, output: Any, site: str) -> None:
        """Takes in one output: the first tensor in it."""
        found = tensors(output)
        if not found:
            return
        value = found[0][1].detach()
        dim = self._unit_dim
        if dim is None:
            dim = 1 if value.ndim >= 4 else -1  # channels of images; features of anything else
        active = torch.atleast_1d(value > 0).movedim(dim, 0)
        if active.ndim > 1:
            active = active.flatten(1).any(1)
        known = self._active.get(site)
        self._active[site] = active if known is None else known | active

    def __getitem__(self, site: str) -> torch.Tensor:
        """For each unit of a site, whether it is dead."""
        return ~self._active[site]

    def __iter__(self) -> Any:
        return iter(self._active)

    def __len__(self) -> int:
        """How many sites were seen."""
        return len(self._active)

    def share(self, site: str) -> float:
        """The share of a site's units that are dead."""
        return float(self[site].float().mean())

    def reset(self) -> None:
        """Begins a new window."""
        self._active.clear()

    def __repr__(self) -> str:
        rows = (f"{site}: {int(self[site].sum())} of {len(self[site])}" for site in self)
        return f"<dead units, {', '.join(rows) or 'nothing seen'}>"
