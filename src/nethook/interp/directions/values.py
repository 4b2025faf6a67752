"""One vector per row from a site of a model: the token or tokens that count, pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.editing.limits import Places, check_places, places_among
from nethook.editing.tokens import PADDING, by_name, plain_tokens, tokens_of
from nethook.errors import OptionError
from nethook.extracting.features import Reader
from nethook.extracting.pooling import Pool, pooled
from nethook.extracting.progress import Bar
from nethook.interp.batches import batches, count_of
from nethook.restoring.unchanged import model_unchanged, process_unchanged

Pooling: TypeAlias = str | int | slice | Sequence[int]
At: TypeAlias = str | Mapping[str, str]


def check_pooling(pool: object) -> None:
    """Refuses what does not say which tokens count."""
    if isinstance(pool, str):
        if pool not in ("last", "mean"):
            raise OptionError(
                '`pool` must be "last", "mean", or positions of tokens (a number, a list or a '
                f"slice); got {pool!r}."
            )
    else:
        check_places("pool", pool)
        if pool is None:
            raise OptionError('`pool` must be "last", "mean" or positions of tokens; got None.')


def check_at(at: object) -> tuple[str, str]:
    """The one site, and the path inside its output."""
    if isinstance(at, str):
        return at, ""
    if isinstance(at, Mapping) and len(at) == 1:
        ((site, path),) = at.items()
        return str(site), str(path)
    raise OptionError(
        "`at` must be the address of one site, or {address: path inside its output}; got "
        f"{at!r:.80}."
    )


def site_values(
    model: nn.Module, data: Any, at: At, pool: Pooling, *, name: str, progress: bool | None = None
) -> torch.Tensor:
    """What a site gives for each row of the data, in float64: (rows, features)."""
    found = []
    bar = Bar(count_of(data), 0, shown=progress, label=f"running {name}", unit="rows")
    with model_unchanged(model, evaluation=True), bar:
        for inputs in batches(data, name):
            with process_unchanged(model, inputs):
                rows = _rows(model, inputs, at, pool)
            found.append(rows)
            bar.advance(len(rows))
    return torch.cat(found)


def _rows(model: nn.Module, inputs: Inputs, at: At, pool: Pooling) -> torch.Tensor:
    tokens = tokens_of(by_name(model, tuple(inputs.args), inputs.kwargs))

    def one(value: torch.Tensor) -> torch.Tensor:
        if value.ndim == 2:
            return value
        if value.ndim != 3:
            raise OptionError(
                "`at` must be a site with one vector per row or per token, (rows, features) or "
                f"(rows, tokens, features); got {tuple(value.shape)}. Directions lie along the "
                "last dimension."
            )
        known = tokens
        if known is None or known.length != value.shape[1]:
            known = plain_tokens(value.shape[1], value.device)
        how: Pool = "last" if pool == "last" else "mean"
        places: Places = None if isinstance(pool, str) else pool
        chosen = known.positions != PADDING if places is None else places_among(known, places)
        chosen = chosen.to(value.device).expand(value.shape[:2])
        empty = (~chosen.any(1)).nonzero().flatten().tolist()
        if empty:
            raise OptionError(
                f"`pool` must name tokens that every row has; got {pool!r}, and row {empty[0]} has "
                "no such token."
            )
        return pooled(value, how, chosen)

    by_site = Reader(model, at, pool=one).read(inputs)
    return next(iter(by_site.values())).double().cpu()
