"""The 8-bit codes of a heatmap read back, as the script of a page reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nethook.drawing.data import Floats
from nethook.drawing.rendering.render import INFINITE, MISSING, TOP, ZERO


def decode_codes(codes: Any, low: float, high: float, *, log: bool) -> Floats:
    """Values of codes: what `decode` of draw.js does."""
    scaled = low + codes.astype(np.float64) / TOP * (high - low)
    scaled = np.where(codes == TOP, high, scaled)
    values = 10.0**scaled if log else scaled
    values = np.where(codes == INFINITE, np.inf, values)
    values = np.where(codes == ZERO, 0.0, values)
    return np.where(codes == MISSING, np.nan, values)
