"""`cka`: how alike the layers of two networks represent the same data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.patterns import Pattern
from nethook.drawing.data import Spec
from nethook.editing.tokens import PADDING, by_name, tokens_of
from nethook.errors import OptionError
from nethook.extracting.dataset import Features
from nethook.extracting.features import Reader
from nethook.extracting.progress import Bar
from nethook.interp.batches import batches, count_of
from nethook.interp.comparing.hsic import LEAST, centred_gram, hsic
from nethook.interp.results.result import Result
from nethook.interp.sweeping.ranks import Ranks
from nethook.restoring.unchanged import model_unchanged, process_unchanged
from nethook.text.table import Table

How = Literal["flatten", "mean", "last", "tokens"]
_HOWS = ("flatten", "mean", "last", "tokens")
_ROWS = 256  # of features without a model in a batch


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CKA(Result):
    """The result of `interp.cka`: `values` (sites of a, sites of b), 1 for the same up to rotation.

    The estimate is unbiased, so that unrelated layers are about 0, and may be slightly below it.
    """

    _FORMAT: ClassVar[str] = "nethook_cka"

    sites_a: tuple[str, ...]
    sites_b: tuple[str, ...]
    values: torch.Tensor
    batches: int
    samples: int
    left_out: int = 0
    pool: str | None = None

    def spec(self) -> Spec:
        """The figure as plain data: sites by sites."""
        from nethook.drawing.studies.token_grid import token_grid

        shown = self.values.numpy()
        return token_grid(
            "How alike layers represent the data (CKA)", self.sites_a, self.sites_b, shown,
            texts=[[f"{value:.2f}" for value in row] for row in shown.tolist()], unit="CKA",
            axes=("model_a", "model_b"),
        )  # fmt: skip

    def table(self) -> Table:
        """Sites by sites."""
        out = f", {self.left_out} left out of batches that were too small" if self.left_out else ""
        title = (
            f"CKA of {len(self.sites_a)} × {len(self.sites_b)} sites over {self.samples} samples "
            f"in {self.batches} batches{out}"
        )
        rows = [
            (site, *[f"{float(value):.3f}" for value in row])
            for site, row in zip(self.sites_a, self.values, strict=True)
        ]
        return Table(title, ("", *self.sites_b), rows, frozenset(self.sites_b))


def cka(
    model_a: nn.Module | Features | Mapping[str, torch.Tensor],
    model_b: nn.Module | Features | Mapping[str, torch.Tensor] | None = None,
    data: Any = None,
    at: Pattern | None = None,
    *,
    at_b: Pattern | None = None,
    pool: How | None = None,
    spread: bool = False,
    progress: bool | None = None,
) -> CKA:
    """Linear CKA between every site of one network and every site of another.

        r = interp.cka(trained, other, loader, at="layer*", pool="flatten")
        r.values, r.figure()

    Arguments:
        model_a, model_b: networks, or features of them: `nethook.load_features(...)` or a mapping
            from sites to tensors, row by row of the same samples. None for b compares a with
            itself.
        data: inputs, or a loader of batches; both networks get the same. Not for features.
        at, at_b: sites of a, and of b where they have other names.
        pool: what a sample is, where values have more than (rows, features): "flatten" (rows, all
            of a row's numbers), "mean" (over tokens or pixels), "last" (token), or "tokens" (every
            token, or pixel, is a sample of its own; padding is none).
        spread: over the ranks of torchrun: batches are shared, and each rank gets the result.
        progress: whether to show a bar; None: on a terminal and in a notebook.

    Returns:
        A `CKA`.

    HSIC is estimated without bias in every batch, and numerator and denominators are averaged over
    batches before the ratio is taken. A batch needs at least 4 samples; smaller ones are left out.

    Cost: a forward of each network per batch, and a (samples × samples) matrix per site of a batch.
    """
    if pool is not None and pool not in _HOWS:
        raise OptionError(
            f'`pool` must be "flatten", "mean", "last", "tokens" or None; got {pool!r}.'
        )
    ranks = Ranks(spread=spread)
    pairs, total = _pairs(model_a, model_b, data, at, at_b, pool)
    names: tuple[list[str], list[str]] = ([], [])
    sums: list[torch.Tensor] = []
    counts = torch.zeros(3, dtype=torch.double)  # batches, samples, left out
    bar = Bar(total, 0, shown=progress, label="comparing", unit="samples")
    with bar:
        for number, make in enumerate(pairs):
            if number % ranks.count != ranks.rank:
                continue
            a, b = make()
            rows = len(next(iter(a.values())))
            names = list(a), list(b)
            if rows < LEAST:
                counts[2] += rows
                continue
            grams = [[centred_gram(value) for value in side.values()] for side in (a, b)]
            own = [torch.stack([hsic([g], [g])[0, 0] for g in side]) for side in grams]
            new = [hsic(grams[0], grams[1]), *own]
            sums = new if not sums else [s + n for s, n in zip(sums, new, strict=True)]
            counts[:2] += torch.tensor([1.0, rows])
            bar.advance(rows)
    counts = ranks.summed(counts)
    if not counts[0]:
        raise OptionError(
            f"`data` must have a batch of at least {LEAST} samples, which the unbiased estimate "
            f"needs; got {int(counts[2])} samples in smaller ones."
        )
    names, shared = _together(ranks, names, sums)
    cross, own_a, own_b = shared
    scale = torch.where((own_a > 0)[:, None] & (own_b > 0), own_a[:, None] * own_b, torch.nan)
    return CKA(
        sites_a=tuple(names[0]), sites_b=tuple(names[1]), values=cross / scale.sqrt(),
        batches=int(counts[0]), samples=int(counts[1]), left_out=int(counts[2]), pool=pool,
    )  # fmt: skip


def _together(
    ranks: Ranks, names: tuple[list[str], list[str]], sums: list[torch.Tensor]
) -> tuple[tuple[list[str], list[str]], list[torch.Tensor]]:
    """The sums of all ranks; one that had no batch of its own has zeros."""
    names = ranks.agreed(names)
    sizes = len(names[0]), len(names[1])
    mine = sums or [torch.zeros(size).double() for size in (sizes, sizes[0], sizes[1])]
    return names, [ranks.summed(each) for each in mine]


def _pairs(
    a: Any, b: Any, data: Any, at: Any, at_b: Any, pool: How | None
) -> tuple[Iterator[Any], int | None]:
    """For each batch, a function that gives the values of both sides by site; and how many."""
    kinds = {isinstance(side, nn.Module) for side in (a, b) if side is not None}
    if kinds == {True, False}:
        raise OptionError(
            "`model_a` and `model_b` must both be networks, or both be features; got "
            f"{type(a).__name__} and {type(b).__name__}."
        )
    if kinds == {False}:
        if data is not None or at is not None:
            raise OptionError("`data` and `at` must be left out for features; got some.")
        one, two = _stored(a), _stored(b if b is not None else a)
        rows = {len(value) for value in (*one.values(), *two.values())}
        if len(rows) != 1:
            raise OptionError(f"features must have the same rows on both sides; got {rows}.")
        starts = range(0, rows.pop(), _ROWS)

        def cut(start: int) -> Any:
            part = slice(start, start + _ROWS)
            return lambda: tuple(
                {site: _samples(value[part], pool, None, site) for site, value in side.items()}
                for side in (one, two)
            )

        return (cut(start) for start in starts), len(starts)
    if data is None or at is None:
        missing = " and ".join(f"{n}=None" for n, v in (("data", data), ("at", at)) if v is None)
        raise OptionError(
            f"`data` and `at` must be given, what runs and which sites to compare; got {missing}."
        )

    def run(inputs: Inputs) -> Any:
        def both() -> Any:
            found = _values(a, inputs, at, pool)
            return found, found if b is None else _values(b, inputs, at_b or at, pool)

        return both

    return (run(inputs) for inputs in batches(data, rows=_ROWS)), count_of(data, _ROWS)


def _stored(given: Any) -> dict[str, torch.Tensor]:
    if isinstance(given, Features):
        return {site: given.tensor(site) for site in given.sites}
    return dict(given)


def _values(model: nn.Module, inputs: Inputs, at: Any, pool: How | None) -> dict[str, torch.Tensor]:
    tokens = tokens_of(by_name(model, tuple(inputs.args), inputs.kwargs))
    with model_unchanged(model, evaluation=True), process_unchanged(model, inputs):
        found = Reader(model, [at] if isinstance(at, str) else at).read(inputs)
    real = None if tokens is None else tokens.positions != PADDING
    return {site: _samples(value, pool, real, site) for site, value in found.items()}


def _samples(
    value: torch.Tensor, pool: How | None, real: torch.Tensor | None, site: str
) -> torch.Tensor:
    """Values as (samples, features), in float64."""
    value = value.detach().double()
    if value.ndim == 2:
        return value
    if pool is None or value.ndim < 2:
        raise OptionError(
            f"`pool` must say what a sample is where {site!r} has the shape {tuple(value.shape)}; "
            f'got {pool!r}. Write pool="flatten", "mean", "last", or "tokens" (each token or pixel '
            "is one)."
        )
    if pool == "flatten":
        return value.flatten(1)
    if value.ndim > 3:  # pixels: (rows, channels, …) as (rows, pixels, channels)
        value, real = value.flatten(2).mT, None
    if real is None or real.shape[1] != value.shape[1]:
        real = torch.ones(1, value.shape[1], dtype=torch.bool)
    real = real.to(value.device).expand(value.shape[:2])
    if pool == "tokens":
        return value[real]
    if pool == "last":
        places = torch.arange(value.shape[1], device=value.device)
        return value[torch.arange(len(value)), torch.where(real, places, 0).amax(1)]
    return torch.where(real[..., None], value, 0).sum(1) / real.sum(1, keepdim=True)
