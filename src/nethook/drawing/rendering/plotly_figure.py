"""The Plotly figure that nethook returns: in a notebook it brings a still picture along.

Where a viewer knows Plotly's own type (JupyterLab, VS Code), that is shown. Elsewhere (a page of
nbconvert, a notebook on a code host) there is HTML with the picture in it, without a script.
"""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any, Final

import plotly.graph_objects as go
import plotly.io as pio

from nethook.drawing.rendering.saving import CONFIG
from nethook.drawing.stills.image import image
from nethook.drawing.stills.still import still

PLOTLY: Final = "application/vnd.plotly.v1+json"
# Notebooks that know only HTML, and in which Plotly draws by a way of its own.
_WAYS_OF_THEIR_OWN: Final = ("colab", "kaggle", "azure", "databricks")


class Figure(go.Figure):  # type: ignore[misc]  # plotly has no types
    """A figure of nethook's; all that Plotly's can do."""

    # By this, Plotly would show itself without asking for the bundle below.
    _ipython_display_ = None

    def _repr_mimebundle_(
        self,
        include: Container[str] | None = None,
        exclude: Container[str] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        renderer = str(pio.renderers.default or "").partition("+")[0]
        if renderer in _WAYS_OF_THEIR_OWN:
            bundle: dict[str, Any] = super()._repr_mimebundle_(include, exclude, **options)
            return bundle
        picture = still(self.to_plotly_json())
        bundle = {
            PLOTLY: {**json.loads(self.to_json()), "config": CONFIG},
            "text/html": _html(picture),
            "image/svg+xml": picture,
            "text/plain": repr(self),
        }
        return {
            kind: shown
            for kind, shown in bundle.items()
            if (include is None or kind in include) and (exclude is None or kind not in exclude)
        }

    def _repr_html_(self) -> str:
        return _html(still(self.to_plotly_json()))

    def __repr__(self) -> str:
        title = ((self.to_plotly_json().get("layout") or {}).get("title") or {}).get("text")
        named = f" {str(title).partition('<br>')[0]!r}" if title else ""
        return f"<Figure{named}: {len(self.data)} traces; .show() opens it>"


def _html(picture: str) -> str:
    return f"<div>{image(picture)}</div>"
