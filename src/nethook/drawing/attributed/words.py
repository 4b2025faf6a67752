"""A text whose tokens are coloured by a number each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Floats, Spec
from nethook.drawing.palette import DIVERGING, MONO
from nethook.text.escape import plotly_text, shorten

_COLUMNS: Final = 80  # characters of a line
_LINE: Final = 34  # pixels
_LONGEST: Final = 24
_DARK, _LIGHT = "#1f2933", "#ffffff"


def words_spec(title: str, tokens: Sequence[str], values: Floats) -> Spec:
    """Tokens in lines, as they are read; colour and hover are their values."""
    values = np.asarray(values, dtype=np.float64)
    finite = np.abs(values[np.isfinite(values)])
    most = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    shown = [shorten(token.strip() or "␣", _LONGEST) for token in tokens]
    places = _places(shown)
    lines = places[-1][0] + 1 if places else 1
    z = np.full((lines, _COLUMNS), np.nan)
    hover = np.full((lines, _COLUMNS), "", dtype=object)
    notes: list[dict[str, Any]] = []
    for number, ((line, column), text, value) in enumerate(zip(places, shown, values, strict=True)):
        cells = (line, slice(column, column + len(text) + 1))
        z[cells] = value
        hover[cells] = f"{number}: {plotly_text(tokens[number])}"
        strong = np.isfinite(value) and abs(value) > 0.65 * most
        notes.append({
            "text": plotly_text(text), "showarrow": False, "x": column + len(text) / 2, "y": line,
            "xref": "x", "yref": "y", "font": {
                "family": MONO, "size": 12, "color": _LIGHT if strong else _DARK,
            },
        })  # fmt: skip
    trace = {
        "type": "heatmap",
        "z": z,
        "x": list(range(_COLUMNS)),
        "y": list(range(lines)),
        "customdata": hover.tolist(),
        "coloraxis": "coloraxis",
        "hoverongaps": False,
        "ygap": 6,
        "hovertemplate": "%{customdata}<br>%{z:.4~g}<extra></extra>",
    }
    return {
        "data": [trace],
        "layout": {
            "title": {"text": plotly_text(title)},
            "height": 110 + _LINE * lines,
            "margin": {"l": 10, "r": 10, "t": 56, "b": 20},
            "coloraxis": {
                "cmin": -most, "cmax": most, "colorscale": DIVERGING,
                "colorbar": {"tickformat": ".2~g"},
            },
            "xaxis": {"visible": False, "range": [-0.5, _COLUMNS - 0.5]},
            "yaxis": {"visible": False, "range": [lines - 0.5, -0.5]},
            "annotations": notes,
        },
    }  # fmt: skip


def _places(shown: Sequence[str]) -> list[tuple[int, int]]:
    """The line and column at which each token begins."""
    places: list[tuple[int, int]] = []
    line = column = 0
    for text in shown:
        if column and column + len(text) + 1 > _COLUMNS:
            line, column = line + 1, 0
        places.append((line, column))
        column += len(text) + 2  # one cell apart from the next
    return places
