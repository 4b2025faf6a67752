"""Sections in a cell of a notebook: read by a browser that runs no script."""

from __future__ import annotations

import pytest

import nethook
from tests.browser.conftest import PICTURES
from tests.figures.shared import training

NOTEBOOK = """
.cell table { table-layout: fixed; color: black; font-size: 12px; }
.cell tbody tr:nth-child(odd) { background: #f5f5f5; }
.cell td, .cell th { text-align: right; }
.cell dl dt { float: left; width: 20%; font-weight: bold; }
.cell dl dd { margin-left: 20%; }
"""
"""What a notebook says of tables and lists."""
SECTIONS = ("verdict", "findings", "loop", "layers", "depth", "model", "ran", "cost")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_is_seen_without_a_script(browser, tmp_path, theme):
    cell = nethook.figures.show(training(), *SECTIONS, at="conv1", theme=theme)._repr_html_()
    file = tmp_path / "cell.html"
    file.write_text(f"<style>{NOTEBOOK}</style><div class='cell'>{cell}</div><p>after", "utf-8")
    context = browser.new_context(
        viewport={"width": 1000, "height": 800}, java_script_enabled=False
    )
    page = context.new_page()
    page.goto(file.as_uri())
    try:
        assert page.evaluate("document.documentElement.scrollWidth") <= 1000
        pictures = "[...document.querySelectorAll('.figure img')]"
        assert page.evaluate(f"{pictures}.length") > 15
        assert page.evaluate(f"{pictures}.every((p) => p.naturalWidth && p.clientHeight > 60)")
        # Nothing to choose, since nobody would answer; the style of the notebook does not leak in.
        assert page.evaluate(
            "[...document.querySelectorAll('select, input')].every((e) => !e.checkVisibility())"
        )
        style = "getComputedStyle(document.querySelector('{}')).{}"
        assert page.evaluate(style.format(".facts dt", "float")) == "none"
        assert page.evaluate(style.format("#findings td, td", "textAlign")) == "left"
        paper = {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 27, 33)"}[theme]
        assert page.evaluate(style.format(".card", "backgroundColor")) == paper
        # And that of the cell does not leak out.
        assert page.evaluate(style.format("body > p", "fontSize")) == "16px"
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURES / f"cell-{theme}.png", full_page=True)
    finally:
        context.close()
