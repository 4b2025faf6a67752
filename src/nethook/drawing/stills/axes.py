"""Axes of a still picture: from values to pixels, and which ticks there are."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nethook.text.numbers import log_ticks, number, share

Floats = npt.NDArray[np.float64]
_TICKS: Final = 5


def array_of(value: Any) -> npt.NDArray[Any]:
    """An array as Plotly keeps it: a list, numpy's, or base64 of its bytes."""
    if isinstance(value, Mapping) and "bdata" in value:
        flat = np.frombuffer(base64.b64decode(value["bdata"]), dtype=np.dtype(value["dtype"]))
        shape = [int(length) for length in str(value.get("shape", flat.size)).split(",")]
        return flat.reshape(shape)
    return np.asarray([] if value is None else value)


def axes_of(layout: Mapping[str, Any], data: Sequence[Mapping[str, Any]]) -> dict[str, Axis]:
    """Every axis that a trace uses, by its short name: `x`, `y`, `y2`."""
    axes: dict[str, Axis] = {}
    for letter in "xy":
        names = {str(trace.get(f"{letter}axis") or letter) for trace in data} or {letter}
        for name in sorted(names):
            traces = [t for t in data if str(t.get(f"{letter}axis") or letter) == name]
            about = layout.get(f"{letter}axis{name[1:]}") or {}
            axes[name] = Axis(letter, about, traces)
    return axes


class Axis:
    """One axis: `place` says between which pixels it lies, then `at` says where a value is."""

    def __init__(
        self, letter: str, about: Mapping[str, Any], traces: Sequence[Mapping[str, Any]]
    ) -> None:
        self.letter = letter
        self.visible = about.get("visible", True) is not False
        self.has_grid = about.get("showgrid", True) is not False
        self.anchor = str(about.get("anchor") or "")
        self.title = str((about.get("title") or {}).get("text") or "")
        self.log = about.get("type") == "log"
        self.start, self.end = 0.0, 1.0  # pixels of the least and the greatest
        self._about = about
        values = [array_of(trace.get(letter)) for trace in traces]
        texts = [value for value in values if value.dtype.kind in "UO"]
        by_name = about.get("type") == "category" or bool(texts)
        listed = list(about.get("categoryarray") or [])
        listed += [str(name) for value in values for name in value] if by_name else []
        self.names: list[str] = list(dict.fromkeys(map(str, listed)))
        self._low, self._high = self._ends(values, traces)

    def _ends(
        self, values: Sequence[npt.NDArray[Any]], traces: Sequence[Mapping[str, Any]]
    ) -> tuple[float, float]:
        given = self._about.get("range")
        if given is not None and None not in given:
            return float(given[0]), float(given[1])
        low, high = (-0.5, len(self.names) - 0.5) if self.names else self._seen(values, traces)
        return (high, low) if self._about.get("autorange") == "reversed" else (low, high)

    def _seen(
        self, values: Sequence[npt.NDArray[Any]], traces: Sequence[Mapping[str, Any]]
    ) -> tuple[float, float]:
        parts = []
        cells = False
        for value, trace in zip(values, traces, strict=True):
            kind = trace.get("type")
            if kind in ("heatmap", "image"):
                cells = True
                shape = array_of(trace.get("z")).shape
                length = shape[1 if self.letter == "x" else 0] if len(shape) > 1 else 1
                parts.append(np.asarray(edges(value, length)))
            else:
                parts.append(self.scaled(value))
                if kind == "bar":
                    parts.append(np.zeros(1))
        every = np.concatenate(parts) if parts else np.zeros(0)
        every = every[np.isfinite(every)]
        if not every.size:
            return 0.0, 1.0
        low, high = float(every.min()), float(every.max())
        if self._about.get("rangemode") == "tozero":
            low = min(low, 0.0)
        pad = 0.0 if cells else 0.05 * (high - low) or 0.5
        return low - pad, high + pad

    def scaled(self, value: Any) -> Floats:
        """Values as the axis has them: logarithms, or places of names."""
        array = array_of(value)
        if self.names:
            places = {name: float(place) for place, name in enumerate(self.names)}
            return np.array([places.get(str(name), np.nan) for name in array.ravel()])
        numbers = array.astype(np.float64).ravel()
        if not self.log:
            return numbers
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithms = np.log10(numbers)
        logarithms[~np.isfinite(logarithms)] = np.nan
        return logarithms

    def place(self, start: float, end: float) -> None:
        """The least value is at `start`, the greatest at `end`; of these its part."""
        first, last = self._about.get("domain") or (0.0, 1.0)
        self.start, self.end = start + first * (end - start), start + last * (end - start)

    def at_scaled(self, value: float) -> float:
        """The pixel of a value as the axis has it."""
        return self.start + (value - self._low) / ((self._high - self._low) or 1.0) * (
            self.end - self.start
        )

    def at(self, value: Any) -> float:
        """The pixel of a value."""
        if self.names and not isinstance(value, str):
            return self.at_scaled(float(value))  # the place of a name
        return self.at_scaled(float(self.scaled([value])[0]))

    def pixels(self, values: Any) -> Floats:
        """The pixels of values."""
        scaled = self.scaled(values)
        return self.start + (scaled - self._low) / ((self._high - self._low) or 1.0) * (
            self.end - self.start
        )

    def span(self, values: Any, length: int) -> tuple[float, float]:
        """The pixels at which `length` cells begin and end."""
        first, last = (-0.5, length - 0.5) if self.names else edges(array_of(values), length)
        return self.at_scaled(first), self.at_scaled(last)

    def ticks(self) -> Iterator[tuple[Any, str]]:
        """Values with what stands beside them."""
        low, high = sorted((self._low, self._high))
        if self._about.get("tickvals") is not None:
            places = list(array_of(self._about["tickvals"]))
            said = self._about.get("ticktext") or [number(float(place)) for place in places]
            for place, text in zip(places, said, strict=False):
                scaled = place if self.names else float(self.scaled([place])[0])
                if isinstance(scaled, str) or low <= float(scaled) <= high:
                    yield place, str(text)
        elif self.names:
            every = max(1, math.ceil(len(self.names) / 60))
            for place, name in list(enumerate(self.names))[::every]:
                yield float(place), name
        elif self.log:
            yield from zip(*log_ticks(10.0**low, 10.0**high), strict=True)
        else:
            for place in _round_places(low, high):
                percent = "%" in str(self._about.get("tickformat", ""))
                yield place, share(place) if percent else number(place)


def edges(values: npt.NDArray[Any], length: int) -> tuple[float, float]:
    """Where cells begin and end, of which the edges or the middles are known."""
    if values.dtype.kind in "UO" or not values.size:
        return -0.5, length - 0.5
    numbers = values.astype(np.float64)
    if len(numbers) == length + 1:
        return float(numbers[0]), float(numbers[-1])
    half = float(numbers[1] - numbers[0]) / 2 if len(numbers) > 1 else 0.5
    return float(numbers[0]) - half, float(numbers[-1]) + half


def _round_places(low: float, high: float) -> Iterator[float]:
    if not high > low:
        return
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * size for size in (1, 2, 5, 10) if power * size >= rough)
    first = math.ceil(low / step)
    yield from (round(step * place, 12) for place in range(first, math.floor(high / step) + 1))
