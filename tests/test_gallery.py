"""docs/gallery.md shows every figure, each in both themes, below the code that makes it."""

from __future__ import annotations

import re

import pytest

from tools.gallery import OF_RESULTS, PAGE, PICTURES, THEMES, UNTHEMED, figures, shown

TEXT = PAGE.read_text(encoding="utf-8")


def test_every_public_figure_is_shown_below_a_block_that_calls_it() -> None:
    made = {name: code for code, name in shown(TEXT) if name}
    assert set(made) == {*figures(), *OF_RESULTS, *UNTHEMED}
    assert [name for name in figures() if f"nethook.figures.{name}(" not in made[name]] == []
    assert ".figure()" in made["scales"]
    assert all(".figure(" in made[name] for name in OF_RESULTS)


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
    assert names == themed | {f"{name}-light.svg" for name in UNTHEMED}
    for name in both:
        light, dark = (background(name, theme) for theme in THEMES)
        assert light != dark, name


def background(name: str, theme: str) -> str:
    """The colour that a picture is drawn on."""
    picture = (PICTURES / f"{name}-{theme}.svg").read_text(encoding="utf-8")
    found = re.search(r'<rect[^>]*style="fill: rgb\((.*?)\)', picture)
    assert found is not None, name
    return found[1]
