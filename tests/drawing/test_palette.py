"""Colours: readable on their background, and different for everybody."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from nethook.drawing.palette import INK, LINES, ON_DARK, PAPER, SEVERITIES, THEMES, faint, template

# How a colour looks with one kind of cone missing, in linear RGB (Viénot, Brettel and Mollon 1999).
DICHROMATS = {
    "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
}


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one: str, two: str) -> float:
    light = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, two))
    return (light[1] + 0.05) / (light[0] + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear RGB."""
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(matrix) @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def shown(colour: str, theme: str) -> str:
    return ON_DARK[colour] if theme == "dark" else colour


@pytest.mark.parametrize("theme", THEMES)
def test_lines_and_texts_are_readable(theme):
    for colour in LINES:
        assert contrast(shown(colour, theme), PAPER[theme]) >= 3.0
    assert contrast(INK[theme], PAPER[theme]) >= 7.0
    soft = template(theme)["layout"]["xaxis"]["tickfont"]["color"]
    assert contrast(soft, PAPER[theme]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", DICHROMATS)
def test_lines_differ_for_the_colour_blind(kind, theme):
    seen = [lab(np.array(DICHROMATS[kind]) @ linear(shown(c, theme))) for c in LINES[:5]]
    nearest = min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2))
    assert nearest > 15  # about 2 is the least that one can see side by side


def test_severity_is_told_by_shape_too():
    assert len({symbol for _, symbol in SEVERITIES.values()}) == len(SEVERITIES)
    assert len({colour for colour, _ in SEVERITIES.values()}) == len(SEVERITIES)


def test_a_faint_colour():
    assert faint("#0072B2", 0.25) == "rgba(0,114,178,0.25)"
