"""The tree of a model: names, types, shapes, and where its parameters are."""

from __future__ import annotations

from collections.abc import Sequence

from nethook.drawing.data import Row, Spec
from nethook.drawing.palette import BLUE, MONO, faint
from nethook.text.escape import plotly_text, shorten


def tree(rows: Sequence[Row], title: str = "Model") -> Spec:
    """One line per module, in the order of execution; a bar shows its share of the parameters."""
    places = list(range(len(rows)))
    total = max(1, sum(row.parameters for row in rows if not _has_children(rows, row)))
    deepest = max((row.depth for row in rows), default=0)
    texts = [
        " " * (3 * row.depth)
        + plotly_text(shorten(row.address.rpartition(".")[2] or "(model)", 28))
        for row in rows
    ]
    hover = [
        "<br>".join(
            line
            for line in (
                f"<b>{plotly_text(shorten(row.address or '(model)', 90))}</b>",
                plotly_text(shorten(row.kind, 60)),
                f"returns {plotly_text(row.shape)}" if row.shape else "",
                f"{row.parameters:,} parameters, {row.parameters / total:.1%}"
                if row.parameters
                else "",
                plotly_text(row.note),
            )
            if line
        )
        for row in rows
    ]
    font = {"family": MONO, "size": 12}
    columns = (
        (0.0, texts),
        (0.40, [plotly_text(shorten(row.kind, 24)) for row in rows]),
        (0.62, [plotly_text(shorten(row.shape, 22)) for row in rows]),
    )
    data: list[dict[str, object]] = [
        {
            "type": "scatter", "mode": "text", "x": [x] * len(rows), "y": places,
            "text": column, "textposition": "middle right", "textfont": font,
            "hovertext": hover, "hovertemplate": "%{hovertext}<extra></extra>",
            "cliponaxis": False,
        }
        for x, column in columns
    ]  # fmt: skip
    bars = [0.14 * (row.parameters / total) ** 0.5 for row in rows]  # by area: small ones are seen
    data.append(
        {
            "type": "bar", "orientation": "h", "y": places, "x": bars, "base": 0.80,
            "marker": {"color": faint(BLUE, 0.75)}, "width": 0.55,
            "text": [_millions(row.parameters) if row.parameters else "" for row in rows],
            "textposition": "outside", "textfont": {"size": 11}, "cliponaxis": False,
            "hovertext": hover, "hovertemplate": "%{hovertext}<extra></extra>",
        }
    )  # fmt: skip
    layout = {
        "title": {"text": plotly_text(title)},
        "height": (70 if title else 30) + 22 * max(1, len(rows)),
        "meta": {"least": 640},
        "showlegend": False,
        "hovermode": "closest",
        "xaxis": {"visible": False, "range": [-0.01 - 0.002 * deepest, 1.04], "fixedrange": True},
        "yaxis": {
            "visible": False,
            "range": [len(rows) - 0.4, -0.6],
            "fixedrange": True,
        },
        "margin": {"l": 10, "r": 10, "t": 46 if title else 10, "b": 10},
    }
    return {"data": data, "layout": layout}


def _has_children(rows: Sequence[Row], row: Row) -> bool:
    prefix = f"{row.address}." if row.address else ""
    return any(other.address.startswith(prefix) and other is not row for other in rows)


def _millions(count: int) -> str:
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:,}"
