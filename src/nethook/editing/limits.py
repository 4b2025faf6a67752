"""Edits of a part of a value: some rows of the batch, some tokens by their absolute position.

    edits.zero(rows=[0, 2])
    edits.steer(direction, 4.0, positions=slice(5, None))     # from the sixth token on
    edits.steer(direction, 4.0, phase="decode")               # tokens that were generated

Rows are dimension 0 of a value. Tokens are the dimension whose length is the number of tokens of
the call, for most values dimension 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch

from nethook.editing.tokens import PADDING, CallsUnderWay, Tokens, plain_tokens
from nethook.errors import EditError, OptionError

Places: TypeAlias = int | slice | Sequence[int] | None
Phase: TypeAlias = Literal["prompt", "decode", "all"]
PHASES = ("prompt", "decode", "all")


class Limits:
    """The part of a value that an edit changes."""

    __slots__ = ("calls", "phase", "positions", "rows")

    def __init__(self, rows: Places, positions: Places, phase: str | None = None) -> None:
        self.rows = rows
        self.positions = positions
        self.phase = phase
        self.calls: CallsUnderWay | None = None  # of the scope that it is attached in

    @property
    def by_tokens(self) -> bool:
        """Whether the part depends on which token stands where."""
        return self.positions is not None or self.phase is not None

    def part_of(self, value: torch.Tensor, site: str) -> torch.Tensor | None:
        """True where a value is changed, in a shape that broadcasts to it; None: nowhere."""
        if not value.ndim:
            raise EditError(
                f"an edit with rows= or positions= needs a value with rows; {site!r} has a single "
                "number. Leave them out."
            )
        part: torch.Tensor | None = None
        if self.rows is not None:
            count = torch.tensor([[value.shape[0]]])
            rows = _chosen(torch.arange(value.shape[0])[None], count, self.rows)
            part = rows.to(value.device).reshape(-1, *[1] * (value.ndim - 1))
        if self.by_tokens:
            at = self._at_tokens(value, site)
            part = at if part is None else part & at
        return part if part is not None and bool(part.any()) else None

    def _at_tokens(self, value: torch.Tensor, site: str) -> torch.Tensor:
        """The part by positions and phase."""
        known = None if self.calls is None else self.calls.innermost()
        if known is None and self.phase is not None:
            if self.phase == "all" and self.positions is None:  # no tokens, so no padding
                return torch.ones([1] * value.ndim, dtype=torch.bool, device=value.device)
            if self.phase != "all":
                raise EditError(
                    f'an edit with phase="{self.phase}" needs a model that is called with '
                    f"`input_ids` or `inputs_embeds`; {site!r} ran outside such a call. Use "
                    "positions= or calls=."
                )
        tokens = self._tokens(value, site)
        dim = token_dim(value, tokens.length, site)
        chosen = tokens.positions != PADDING
        if self.positions is not None:
            chosen = places_among(tokens, self.positions)
        if tokens.prompt is not None and self.phase in ("prompt", "decode"):
            chosen = chosen & (tokens.prompt if self.phase == "prompt" else ~tokens.prompt)
        if chosen.shape[0] not in (1, value.shape[0]):
            raise EditError(
                f"an edit with positions= or phase= needs a value with a row for each text; "
                f"{site!r} has {value.shape[0]} rows, and the model was called with "
                f"{chosen.shape[0]} texts. Leave them out."
            )
        shape = [1] * value.ndim
        shape[0], shape[dim] = chosen.shape
        return chosen.to(value.device).reshape(shape)

    def _tokens(self, value: torch.Tensor, site: str) -> Tokens:
        known = None if self.calls is None else self.calls.innermost()
        if known is not None:
            return known
        if value.ndim < 2:
            raise EditError(
                f"an edit with positions= needs a value with tokens along dimension 1; {site!r} "
                f"has the shape {tuple(value.shape)}. Leave positions= out."
            )
        return plain_tokens(value.shape[1], value.device)


def token_dim(value: torch.Tensor, length: int, site: str) -> int:
    """The dimension of a value along which its tokens are."""
    fits = [dim for dim in range(1, value.ndim) if value.shape[dim] == length]
    if not fits:
        raise EditError(
            f"an edit with positions= needs a value with {length} tokens along a dimension; "
            f"{site!r} has the shape {tuple(value.shape)}. Edit a site before tokens are dropped "
            "or merged."
        )
    if value.ndim == 4 and 2 in fits and 1 in fits:
        raise EditError(
            f"an edit with positions= cannot tell which dimension of {site!r} has the tokens: two "
            f"of {tuple(value.shape)} have the length {length}. Write a function that changes the "
            "part."
        )
    return fits[0]


def check_phase(phase: object) -> None:
    """Refuses what is no phase of a generation."""
    if phase is not None and phase not in PHASES:
        raise OptionError(
            f'`phase` must be "prompt", "decode", "all" (every token, and no padding) or None; got '
            f"{phase!r}."
        )


def check_places(name: str, places: object) -> None:
    """Refuses what is no choice of rows or positions."""
    numbers = places if isinstance(places, list | tuple) else (places,)
    whole = all(type(number) is int for number in numbers) and len(numbers) > 0
    sliced = isinstance(places, slice) and (places.step is None or places.step > 0)
    if places is not None and not whole and not sliced:
        raise OptionError(
            f"`{name}` must be a number, a list of numbers or a slice; got {places!r}. Write "
            f"{name}=0, {name}=[0, 2] or {name}=slice(1, None)."
        )


def places_among(tokens: Tokens, places: Places) -> torch.Tensor:
    """Where tokens are at these positions: (rows, length)."""
    return _chosen(tokens.positions, tokens.counts, places)


def _chosen(numbers: torch.Tensor, counts: torch.Tensor, places: Places) -> torch.Tensor:
    """Where numbers (rows, n) are chosen; negative places count back from (rows, 1) counts."""
    counts = counts.to(numbers.device)
    if isinstance(places, slice):
        start = _from_start(places.start or 0, counts).clamp(min=0)
        chosen = (numbers >= start) & (numbers >= 0)
        if places.stop is not None:
            chosen &= numbers < _from_start(places.stop, counts)
        return chosen & ((numbers - start) % (places.step or 1) == 0)
    chosen = torch.zeros_like(numbers, dtype=torch.bool)
    for place in (places,) if isinstance(places, int) else places or ():
        chosen |= numbers == _from_start(place, counts)
    return chosen & (numbers != PADDING)


def _from_start(place: int, counts: torch.Tensor) -> torch.Tensor:
    return torch.full_like(counts, place) if place >= 0 else counts + place
