"""Features in chunks of float64: what probes and erasure read, whatever the length of the data.

A tensor that is mapped from a file (`nethook.load_features(...).tensor(site)`) is read chunk by
chunk and never as a whole. With several processes each reads its share of the chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from nethook.errors import OptionError
from nethook.extracting.dataset import Features
from nethook.interp.sweeping.ranks import Ranks

_NUMBERS = 1 << 22  # of float64 in a chunk: 32 MB


class Samples:
    """Rows of features, (samples, features); `chunks` gives them in float64."""

    def __init__(self, values: Any, ranks: Ranks | None = None) -> None:
        if not isinstance(values, torch.Tensor) or values.ndim != 2 or not values.numel():
            got = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__
            raise OptionError(
                f"`X` must be features, a tensor (samples, features); got {got}. Pool tokens and "
                'pixels first: nethook.features(..., pool="mean").'
            )
        self._values = values.detach()
        self.ranks = ranks or Ranks(spread=False)
        self.count, self.width = values.shape
        self.rows = max(1, min(self.count, _NUMBERS // self.width))

    def chunks(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """The rows of each chunk of this process, and their features."""
        starts = range(0, self.count, self.rows)
        for start in self.ranks.share(starts):
            rows = slice(start, min(self.count, start + self.rows))
            chunk = self._values[rows].double().cpu()
            if not bool(chunk.isfinite().all()):
                row = int((~chunk.isfinite().all(1)).nonzero()[0]) + start
                raise OptionError(
                    f"`X` must be finite; got NaN or an infinity in row {row}. Leave such rows out."
                )
            yield rows, chunk

    def total(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum of what every process has found in its chunks."""
        return self.ranks.summed(tensor)


def sites_of(given: Any) -> dict[str, torch.Tensor] | torch.Tensor:
    """Features as they were given: a tensor, or several by site."""
    if isinstance(given, Features):
        names = given.sites
        by_site = {name: given.tensor(name) for name in names}
        return by_site if len(names) > 1 else by_site[names[0]]
    if isinstance(given, dict):
        if not given:
            raise OptionError("`X` must have at least one site; got an empty mapping.")
        return dict(given)
    return torch.as_tensor(given) if not isinstance(given, torch.Tensor) else given


def classes_of(labels: Any, count: int) -> tuple[torch.Tensor, tuple[str, ...]]:
    """The number of each row's class, and the names of the classes; () for plain numbers."""
    if isinstance(labels, torch.Tensor) or hasattr(labels, "dtype"):
        values = torch.as_tensor(labels).detach().cpu()
        if values.is_floating_point():
            return _checked(values.double(), count), ()
        listed = [int(value) for value in _checked(values, count).flatten().tolist()]
        return _numbered(listed)
    listed = list(labels)
    if listed and all(type(value) is float for value in listed):
        return _checked(torch.tensor(listed, dtype=torch.double), count), ()
    if len(listed) != count:
        raise OptionError(f"`labels` must have one label per row, {count}; got {len(listed)}.")
    return _numbered(listed)


def _checked(values: torch.Tensor, count: int) -> torch.Tensor:
    if values.ndim not in (1, 2) or len(values) != count or (
        values.ndim == 2 and not values.is_floating_point()
    ):  # fmt: skip
        raise OptionError(
            f"`labels` must have one label per row, ({count},); got {tuple(values.shape)}."
        )
    if values.is_floating_point() and not bool(values.isfinite().all()):
        raise OptionError("`labels` must be finite; got NaN or an infinity.")
    return values


def _numbered(listed: list[Any]) -> tuple[torch.Tensor, tuple[str, ...]]:
    kinds = sorted(set(listed))
    if len(kinds) < 2:
        raise OptionError(f"`labels` must have at least two classes; got {kinds!r:.60} alone.")
    numbers = {kind: number for number, kind in enumerate(kinds)}
    return torch.tensor([numbers[one] for one in listed]), tuple(str(kind) for kind in kinds)
