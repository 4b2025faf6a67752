"""A still picture as an image of a page.

An `<img>`: of SVG in the HTML itself, viewers that do not trust a notebook leave nothing but its
texts.
"""

from __future__ import annotations

import base64
import re


def image(picture: str) -> str:
    """HTML that shows an SVG, as wide as there is room for."""
    said = re.search(r'aria-label="([^"]*)"', picture)
    data = base64.b64encode(picture.encode("utf-8")).decode()
    return (
        f'<img alt="{said[1] if said else "figure"}" style="max-width:100%" '
        f'src="data:image/svg+xml;base64,{data}">'
    )
