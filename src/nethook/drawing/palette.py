"""The looks that every figure shares: colours, templates, marks of severity.

Colours of lines and marks are readable on their background (at least 3:1; brighter ones on the
dark) and differ for the colour-blind too (after Okabe and Ito); severity is told by shape as well.
A figure names no background: it comes from the template, so one figure serves both themes.
"""

from __future__ import annotations

from typing import Any, Final

BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
GREEN: Final = "#2E9F5B"
PURPLE: Final = "#C2679A"
BROWN: Final = "#6E470C"
GREY: Final = "#7A828E"

LINES: Final = (BLUE, VERMILION, GREEN, PURPLE, BROWN, GREY)
"""Colours of lines, in the order in which they are used."""

ON_DARK: Final = {
    BLUE: "#4FA3E3",
    VERMILION: "#F58A45",
    GREEN: "#2FB586",
    PURPLE: "#E59AC5",
    BROWN: "#FFE766",
    GREY: "#98A2AE",
}
"""The same colours for a dark background, brighter. `render` puts them in."""

SEVERITIES: Final = {
    "error": (VERMILION, "diamond"),
    "warning": (BROWN, "triangle-up"),
    "info": (BLUE, "circle"),
}
"""Severity of a finding -> its colour and the shape of its mark."""

# Viridis, and a scale from blue over grey to vermilion whose middle is seen on both backgrounds.
SEQUENTIAL: Final = [
    [0.0, "#440154"], [0.125, "#482878"], [0.25, "#3e4989"], [0.375, "#31688e"], [0.5, "#26828e"],
    [0.625, "#1f9e89"], [0.75, "#35b779"], [0.875, "#b5de2b"], [1.0, "#fde725"],
]  # fmt: skip
DIVERGING: Final = [
    [0.0, "#0a3d7a"], [0.2, "#2b7bba"], [0.4, "#93b5cf"], [0.5, "#b8bcc4"],
    [0.6, "#d8aa83"], [0.8, "#d0661a"], [1.0, "#7f2704"],
]  # fmt: skip
DIVERGING_OVER: Final = [
    [0.0, "rgba(10,61,122,1)"], [0.2, "rgba(43,123,186,0.75)"], [0.4, "rgba(43,123,186,0.3)"],
    [0.5, "rgba(184,188,196,0)"], [0.6, "rgba(208,102,26,0.3)"], [0.8, "rgba(208,102,26,0.75)"],
    [1.0, "rgba(127,39,4,1)"],
]  # fmt: skip
"""The same to lie over a picture: the less there is, the more is seen through it."""
TWO: Final = [[0.0, VERMILION], [1.0, "#2f6f9f"]]
"""Silent, active."""

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONO: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

PAPER: Final = {"light": "#ffffff", "dark": "#171b21"}
INK: Final = {"light": "#1f2933", "dark": "#dbe1e8"}
_GRID: Final = {"light": "#e7eaef", "dark": "#2b323b"}
_SOFT: Final = {"light": "#5b6673", "dark": "#9aa5b1"}

THEMES: Final = ("light", "dark")


def template(theme: str) -> dict[str, Any]:
    """The template of a theme, as Plotly has it."""
    paper, ink, grid, soft = PAPER[theme], INK[theme], _GRID[theme], _SOFT[theme]
    axis = {
        "gridcolor": grid,
        "linecolor": grid,
        "zerolinecolor": grid,
        "tickcolor": grid,
        "tickfont": {"color": soft, "size": 11},
        "title": {"font": {"color": soft, "size": 12}, "standoff": 8},
        "automargin": True,
        "zeroline": False,
        "spikecolor": soft,
        "spikethickness": 1,
        "spikedash": "dot",
    }
    bar = {
        "outlinewidth": 0,
        "tickfont": {"color": soft, "size": 11},
        "title": {"font": {"color": soft, "size": 12}, "side": "right"},
        "thickness": 12,
    }
    return {
        "layout": {
            "paper_bgcolor": paper,
            "plot_bgcolor": paper,
            "font": {"family": FONT, "color": ink, "size": 13},
            "title": {"font": {"size": 15, "color": ink}, "x": 0.0, "xanchor": "left"},
            "colorway": list(LINES),
            "xaxis": axis,
            "yaxis": axis,
            "coloraxis": {"colorbar": bar},
            "legend": {"font": {"size": 12, "color": ink}, "bgcolor": "rgba(0,0,0,0)"},
            "hoverlabel": {
                "bgcolor": paper,
                "bordercolor": soft,
                "font": {"color": ink, "family": FONT, "size": 12},
                "align": "left",
                "namelength": 48,
            },
            "annotationdefaults": {"font": {"color": soft, "size": 11}, "arrowcolor": soft},
            "updatemenudefaults": {
                "bgcolor": paper,
                "bordercolor": grid,
                # The chosen button is nearly white in either theme: grey is read on both.
                "font": {"color": GREY, "size": 11},
            },
            "sliderdefaults": {"font": {"color": soft, "size": 11}, "bordercolor": grid},
            "margin": {"l": 60, "r": 20, "t": 46, "b": 44},
            # plotly.js offers by default to send the figure, with its data, to a service.
            "modebar": {"remove": ["sendChartToCloud"], "bgcolor": "rgba(0,0,0,0)", "color": soft},
        }
    }


def faint(colour: str, opacity: float) -> str:
    """A colour of the form `#rrggbb` made transparent."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"
