"""From attributions and maps to the figures of `drawing`, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch

from nethook.drawing.attributed.overlay import overlay_spec
from nethook.drawing.attributed.signal import signal_spec
from nethook.drawing.attributed.words import words_spec
from nethook.drawing.data import Spec
from nethook.drawing.studies.causes import bars_spec
from nethook.errors import OptionError
from nethook.interp.results.places import FEATURES, PIXELS, SIGNAL, TOKENS

_MOST_PICTURES = 6
_MOST_BARS = 40


class Shown(Protocol):
    """What of an attribution is drawn."""

    @property
    def method(self) -> str:
        """The name of the method."""

    @property
    def at(self) -> str:
        """Where the values are from."""

    @property
    def kind(self) -> str:
        """What the places of a value are."""

    @property
    def values(self) -> torch.Tensor:
        """The values themselves."""

    @property
    def score(self) -> torch.Tensor:
        """The target."""

    @property
    def inputs(self) -> torch.Tensor | None:
        """Pictures, signals or token ids."""

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """Texts of places: of each row, or of all rows at once; () where there are none."""

    def shown(self) -> torch.Tensor:
        """Values per place."""

    def top(
        self, n: int = 10, *, row: int | None = None, names: Sequence[str] | None = None
    ) -> Sequence[Any]:
        """The places with the largest values."""


def attribution_spec(
    result: Shown, names: Any, row: int | None, images: torch.Tensor | None
) -> Spec:
    """The figure of an attribution, by what its places are."""
    title = capital(result.method) + (f" of {result.at}" if result.at else "")
    if row is not None and not -len(result.score) <= row < len(result.score):
        raise OptionError(f"`row` must be one of {len(result.score)} rows; got {row!r}.")
    if result.kind == PIXELS:
        pictures = result.inputs if images is None else images
        return overlaid(pictures, result.shown(), title, row)
    if result.kind == TOKENS:
        number = row or 0
        values = result.shown()[number].double().numpy()
        if names is None and result.names:
            names = result.names[number if len(result.names) > 1 else 0]
        texts = token_texts(names, None if result.inputs is None else result.inputs[number])
        texts = texts or [str(place) for place in range(len(values))]
        if len(texts) != len(values):
            raise OptionError(
                f"`names` must have a text for each of the {len(values)} tokens; got {len(texts)}."
            )
        return words_spec(_with_score(title, result, number), texts, values)
    if result.kind == SIGNAL:
        number = row or 0
        values = result.shown()[number].double().numpy()
        signal = None
        if result.inputs is not None:
            one = result.inputs[number].double().cpu()
            signal = (one.mean(0) if one.ndim > 1 else one).numpy()
        return signal_spec(_with_score(title, result, number), signal, values)
    if result.kind == FEATURES:
        parts = result.top(_MOST_BARS, row=row, names=names)
        value, low, high = (
            np.array([getattr(part, name) for part in parts]) for name in ("value", "low", "high")
        )
        return bars_spec(title, [p.place for p in parts], value, low, high, unit="attribution")
    raise OptionError(
        f"a figure needs pixels, tokens, samples or features; values of {result.values.ndim} "
        "dimensions have none. Draw `values` yourself."
    )


def capital(title: str) -> str:
    """A title with a capital at its beginning; the rest is as it was."""
    return title[:1].upper() + title[1:]


def overlaid(images: torch.Tensor | None, maps: torch.Tensor, title: str, row: int | None) -> Spec:
    """Maps (rows, height, width) over pictures; without pictures, over nothing."""
    maps = maps.detach().cpu().double()
    maps = maps[None] if maps.ndim == 2 else maps
    if images is None:
        images = torch.zeros(len(maps), 1, *maps.shape[1:])
    images = images.detach().cpu().double()
    images = images[None] if images.ndim == 3 else images
    if images.ndim != 4 or maps.ndim != 3 or len(images) != len(maps):
        raise OptionError(
            "`images` must be (rows, channels, height, width) with a map (rows, height, width) for "
            f"each; got {tuple(images.shape)} and maps of {tuple(maps.shape)}."
        )
    rows = range(min(len(maps), _MOST_PICTURES)) if row is None else [row % len(maps)]
    return overlay_spec(
        title,
        [images[each].numpy() for each in rows],
        [maps[each].numpy() for each in rows],
        [f"row {each}" for each in rows],
    )


def token_texts(given: Any, ids: torch.Tensor | None) -> list[str]:
    """Texts of tokens: as given, or as a tokenizer reads ids."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        return [str(text) for text in given]
    if ids is None:
        return []
    if hasattr(given, "convert_ids_to_tokens"):
        return [str(text) for text in given.convert_ids_to_tokens(ids.tolist())]
    if hasattr(given, "decode"):
        return [str(given.decode([index])) for index in ids.tolist()]
    if callable(given):
        return [str(given(index)) for index in ids.tolist()]
    return [str(index) for index in ids.tolist()]


def _with_score(title: str, result: Shown, row: int) -> str:
    return f"{title}: score {float(result.score[row]):.4g}"
