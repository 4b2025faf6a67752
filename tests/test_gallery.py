"""docs/gallery.md shows every figure, each in both themes, below the code that makes it."""

from __future__ import annotations

import re

import pytest

from tools.gallery import (
    OF_RESULTS,
    PAGE,
    PICTURES,
    THEMES,
    drawing_results,
    figures,
    shown,
)

TEXT = PAGE.read_text(encoding="utf-8")


def test_every_public_figure_is_shown_below_a_block_that_calls_it() -> None:
    made = {name: code for code, name in shown(TEXT) if name}
    assert set(made) == {*figures(), *OF_RESULTS}
    assert [name for name in figures() if f"nethook.figures.{name}(" not in made[name]] == []
    assert all(".figure(" in made[name] for name in OF_RESULTS)


def test_every_result_that_draws_itself_is_shown() -> None:
    # One probe is drawn as several are.
    here = sorted(each.__name__ for each in drawing_results() if each.__name__ != "Probe")
    assert here == sorted([*set(OF_RESULTS.values()), "Sweep"])  # of `interp` and of `init`


@pytest.mark.parametrize("theme", THEMES)
def test_every_picture_is_there_and_has_text(theme: str) -> None:
    for name in (*figures(), *OF_RESULTS):
        picture = (PICTURES / f"{name}-{theme}.svg").read_text(encoding="utf-8")
        assert picture.startswith("<svg"), name
        assert f"{name}-{theme}.svg" in TEXT


def test_themes_differ_and_no_picture_is_left_over() -> None:
    names = {path.name for path in PICTURES.iterdir()}
    both = [*figures(), *OF_RESULTS]
    themed = {f"{name}-{theme}.svg" for name in both for theme in THEMES}
    assert names == themed
    for name in both:
        light, dark = (background(name, theme) for theme in THEMES)
        assert light != dark, name


def background(name: str, theme: str) -> str:
    """The colour that a picture is drawn on."""
    picture = (PICTURES / f"{name}-{theme}.svg").read_text(encoding="utf-8")
    found = re.search(r'<rect[^>]*style="fill: rgb\((.*?)\)', picture)
    assert found is not None, name
    return found[1]
