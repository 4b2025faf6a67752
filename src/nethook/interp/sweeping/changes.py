"""What a sweep puts in the place of a value: an edit, a function, or values from other runs."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from nethook.editing.calling import call_form, not_in_place
from nethook.editing.catalogue import Edit, answer, clip_norm, noise, patch
from nethook.errors import OptionError, SweepError


@dataclass(frozen=True)
class At:
    """A value: its site, the number of the call, where its rows are, and where its tokens."""

    site: str
    call: int
    batch: int
    positions: int | None = None


class Runs(Protocol):
    """What a change may ask a sweep for: the same sites in other runs."""

    def values(self, inputs: object) -> dict[str, list[torch.Tensor]]:
        """The values of all sites, by site and call, for some inputs."""

    def metric(self, inputs: object) -> torch.Tensor:
        """The metric for some inputs."""

    def rows_of(self, site: str) -> int:
        """The dimension of rows at a site."""


class Change(ABC):
    """Makes new values. It may run the model on other inputs first."""

    source: torch.Tensor | None = None
    """The metric of the run that values are taken from, where there is one."""
    beside: object = None
    """Inputs whose values will be asked for, and that may run in one batch with the base."""

    @abstractmethod
    def prepare(self, runs: Runs) -> None:
        """Called once, before the sweep."""

    @abstractmethod
    def new(self, value: torch.Tensor, at: At) -> torch.Tensor:
        """The new value, of the same shape."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The change in words."""


class take(Change):  # noqa: N801  used like a function
    """The values of the same places in a run on other inputs: activation patching.

        interp.sweep(model, base, ..., change=interp.take(source))
        interp.take(source, positions=[(4, 6), (5, 7)])     # base position, source position

    `source` has as many rows as the base, each the counterpart of one. A source of another length
    needs `positions`: which of its tokens stands for which.
    """

    def __init__(self, source: object, positions: Sequence[tuple[int, int]] | None = None) -> None:
        self.beside = self._inputs = source
        self._pairs = None if positions is None else [tuple(pair) for pair in positions]
        if self._pairs is not None and any(len(pair) != 2 for pair in self._pairs):
            raise OptionError(
                "`positions` must be pairs (base position, source position); got "
                f"{positions!r:.60}."
            )
        self._values: dict[str, list[torch.Tensor]] = {}

    def prepare(self, runs: Runs) -> None:
        """Runs the source."""
        self._values = runs.values(self._inputs)
        self.source = runs.metric(self._inputs)

    def new(self, value: torch.Tensor, at: At) -> torch.Tensor:
        """The value of the source."""
        calls = self._values[at.site]
        if at.call >= len(calls):
            raise SweepError(
                f"{at.site!r} was called {at.call + 1} times or more with base, and {len(calls)} "
                "times with source: there is nothing to take."
            )
        source = calls[at.call].to(value.device)
        if self._pairs is not None:
            return self._moved(value, source, at)
        if source.shape != value.shape:
            raise SweepError(
                f"`source` must give values of the same shape as base; at {at.site!r} it gave "
                f"{tuple(source.shape)} and base {tuple(value.shape)}. Give as many rows, and for "
                "texts of another length say which tokens match: take(source, positions=[(base, "
                "source), …])."
            )
        return source

    def _moved(self, value: torch.Tensor, source: torch.Tensor, at: At) -> torch.Tensor:
        if at.positions is None:
            raise SweepError('take(..., positions=) needs over="positions".')
        new = value.clone()
        for to, come_from in self._pairs or ():
            new.select(at.positions, to).copy_(source.select(at.positions, come_from))
        return new

    @property
    def text(self) -> str:
        """In words."""
        return "take(source)"


class mean_of(Change):  # noqa: N801
    """The mean of each site over data: mean ablation.

    `data` is an iterable of inputs, such as a loader; the mean is over rows and over every other
    dimension but the units, with `each_position=True` over rows alone.
    """

    def __init__(self, data: Iterable[Any], *, each_position: bool = False) -> None:
        self._data = data
        self._each = each_position
        self._means: dict[str, torch.Tensor] = {}

    def prepare(self, runs: Runs) -> None:
        """Runs the model on the data."""
        sums: dict[str, torch.Tensor] = {}
        counts: dict[str, int] = {}
        for inputs in self._data:
            for site, calls in runs.values(inputs).items():
                for value in calls:
                    dims = self._dims(value, runs.rows_of(site))
                    total = value.double().sum(dims, keepdim=True)
                    number = value.numel() // total.numel()
                    if site in sums and sums[site].shape != total.shape:
                        raise SweepError(
                            f"`data` of mean_of must give values of one shape at {site!r}; got "
                            f"{tuple(sums[site].shape)} and {tuple(total.shape)}. Leave "
                            "each_position=True out."
                        )
                    sums[site] = sums[site] + total if site in sums else total
                    counts[site] = counts.get(site, 0) + number
        if not sums:
            raise SweepError("`data` of mean_of must give at least one batch; it gave none.")
        self._means = {site: total / counts[site] for site, total in sums.items()}

    def _dims(self, value: torch.Tensor, batch: int) -> list[int]:
        if self._each:
            return [batch]
        units = 1 if value.ndim in (4, 5) else value.ndim - 1
        return [dim for dim in range(value.ndim) if dim != units or dim == batch]

    def new(self, value: torch.Tensor, at: At) -> torch.Tensor:
        """The mean, in the shape of the value."""
        return self._means[at.site].to(value.device, value.dtype).expand_as(value)

    @property
    def text(self) -> str:
        """In words."""
        return "mean_of(data)"


class resample(Change):  # noqa: N801
    """The value of another row, drawn from a pool of inputs: resample ablation.

    Each row of the base gets one row of the pool, the same for every cell. The draw does not touch
    the random states of the process.
    """

    def __init__(self, pool: object, *, seed: int = 0) -> None:
        self._pool = pool
        self._seed = seed
        self._values: dict[str, list[torch.Tensor]] = {}
        self._batch: dict[str, int] = {}

    def prepare(self, runs: Runs) -> None:
        """Runs the pool."""
        self._values = runs.values(self._pool)
        self._batch = {site: runs.rows_of(site) for site in self._values}

    def new(self, value: torch.Tensor, at: At) -> torch.Tensor:
        """The values of the rows that were drawn."""
        calls = self._values[at.site]
        pool = calls[min(at.call, len(calls) - 1)].to(value.device, value.dtype)
        generator = torch.Generator().manual_seed(self._seed)
        count = value.shape[at.batch]
        drawn = torch.randint(pool.shape[at.batch], (count,), generator=generator)
        new = pool.index_select(at.batch, drawn.to(pool.device))
        if new.shape != value.shape:
            raise SweepError(
                f"`pool` of resample must give values of the same shape as base but for its rows; "
                f"at {at.site!r} it gave {tuple(pool.shape)} and base {tuple(value.shape)}."
            )
        return new

    @property
    def text(self) -> str:
        """In words."""
        return f"resample(pool, seed={self._seed})"


class noise_at(Change):  # noqa: N801
    """The value plus normal noise: each row has its own, the same in every cell of a site.

    The noise is drawn from a generator of its own, by site and call.
    """

    def __init__(self, std: float, *, seed: int = 0) -> None:
        self._std = std
        self._seed = seed

    def prepare(self, runs: Runs) -> None:
        """Nothing to be run."""

    def new(self, value: torch.Tensor, at: At) -> torch.Tensor:
        """The noisy value."""
        rows = []
        for row in range(value.shape[at.batch]):  # each by itself: the batch makes no difference
            # 32 bits: the generator of the CPU looks at no more of a seed.
            seed = zlib.crc32(f"{self._seed} {at.site} {at.call} {row}".encode())
            generator = torch.Generator().manual_seed(seed)
            shape = value.select(at.batch, 0).shape
            rows.append(torch.randn(shape, generator=generator, dtype=torch.float32))
        drawn = torch.stack(rows, at.batch)
        return value + (self._std * drawn).to(value.device, value.dtype)

    @property
    def text(self) -> str:
        """In words."""
        return f"noise_at({self._std:g}, seed={self._seed})"


class _Edited(Change):
    """An edit of the catalogue, or a function."""

    def __init__(self, edit: Callable[..., Any]) -> None:
        self._edit = edit
        self._apply = None if isinstance(edit, Edit) else call_form(edit, self)

    @property
    def what(self) -> str:
        """For messages."""
        return "change="

    def prepare(self, runs: Runs) -> None:
        """Nothing to be run."""

    def new(self, value: torch.Tensor, at: At) -> torch.Tensor:
        """What the edit makes of the value."""
        if self._apply is not None:
            new = not_in_place(self._apply, value, at.site)
        elif isinstance(self._edit, patch):
            new = self._edit(value, at.call)
        else:
            new = self._edit(value)
        new = value if new is None else new
        if not isinstance(new, torch.Tensor) or new.shape != value.shape:
            got = tuple(new.shape) if isinstance(new, torch.Tensor) else type(new).__name__
            raise SweepError(
                f"`change` must return a tensor of the value's shape; at {at.site!r} that is "
                f"{tuple(value.shape)}, and it returned {got}."
            )
        return new

    @property
    def text(self) -> str:
        """In words."""
        if isinstance(self._edit, Edit):
            return repr(self._edit).replace("calls=None, ", "").replace("calls=None", "")
        return getattr(self._edit, "__name__", type(self._edit).__name__)


def as_change(change: object) -> Change:
    """A change of a sweep, from whatever was given."""
    if isinstance(change, Change):
        return change
    if isinstance(change, type) and issubclass(change, Change | Edit):
        raise SweepError(f"`change` must be a change; got the class. Write {change.__name__}(...).")
    if isinstance(change, Edit):
        _check_edit(change)
        return _Edited(change)
    if callable(change):
        return _Edited(change)
    raise SweepError(
        "`change` must be one of nethook.edits, a function of the value, interp.take(source), "
        f"mean_of(data), resample(pool) or noise_at(std); got {type(change).__name__}."
    )


def _check_edit(edit: Edit) -> None:
    name = type(edit).__name__
    if isinstance(edit, answer) or (isinstance(edit, clip_norm) and edit.joint):
        raise SweepError(f"`change` must change one value; got edits.{name}, which cannot.")
    if isinstance(edit, noise) and edit.seed is None:
        raise SweepError(
            "`change` must do the same in every cell; got noise without a seed. Write "
            f"interp.noise_at({edit.std}) or edits.noise({edit.std}, seed=0)."
        )
    limits = (edit.calls, edit.rows, edit.positions, edit.phase)
    if any(limit is not None for limit in limits):
        raise SweepError(
            f"`change` must have no limits of its own; got {edit!r}. The cells say where: over=."
        )
