"""A run from a stranger with markup, templates, formulas and control characters in every text."""

from __future__ import annotations

import csv
import html
import re

import pytest
from typer.testing import CliRunner

import nethook
from nethook.cli.main import app
from nethook.exporting.export import export
from tests.figures.pages import Page, strings
from tests.figures.shared import HOSTILE, hostile

OURS = re.compile(r'<(/?(b|sup|span|i)|br|extra|/extra|span style="color:#[0-9A-Fa-f]{6}")>')
PLAIN = "<script>pwned()</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    return Page(nethook.figures.report(hostile(), path).read_text(encoding="utf-8"))


def test_the_report_has_no_element_that_is_not_ours(page):
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"img", "svg", "iframe", "object", "embed", "base", "form"}
    names = {name for _, attrs in page.elements for name in attrs}
    assert not {name for name in names if name.startswith("on")}
    assert all(str(attrs["href"]).startswith("#") for tag, attrs in page.elements if tag == "a")
    classes = {c for _, attrs in page.elements for c in str(attrs.get("class", "")).split()}
    assert all(re.fullmatch(r"[a-z-]+", each) for each in classes)


def test_the_report_shows_the_texts_as_they_are(page):
    assert page.text.count(PLAIN) > 10
    assert "\\u001b[31m" in page.text  # spelt out
    assert "\x1b" not in page.text


def test_plotly_gets_no_tag_but_ours(page):
    found = 0
    for figure in page.figures.values():
        for text in strings(figure):
            found += "pwned" in text
            assert "<" not in OURS.sub("", text), text
            assert "\x1b" not in text
    assert found > 20


def test_plotly_gets_no_template_but_ours(page):
    for figure in page.figures.values():
        for text in strings(figure):
            if "pwned" in text:
                assert "%{x}%{customdata}" not in text
                assert not re.search(r"\$.*\$", text)


def test_every_public_figure_is_as_safe():
    run = nethook.open_run(hostile())
    layer = next(a for a in Page.__dict__ and [s.address for s in run.sites] if a.endswith("relu1"))
    figures = nethook.figures
    made = [
        figures.overview(run), figures.heatmap(run), figures.depth(run), figures.tree(run),
        figures.histogram(run, layer), figures.bands(run, layer), figures.units(run, layer),
        figures.finding(run, 0), figures.compare(run, run), figures.compare(run, run, "spread"),
    ]  # fmt: skip
    for figure in made:
        for text in strings(figure.to_plotly_json()["layout"]):
            assert "<" not in OURS.sub("", text), text


def test_notebooks_get_no_tag_of_theirs():
    run = nethook.open_run(hostile())
    for shown in (run._repr_html_(), run.findings._repr_html_()):
        tags = {tag for tag, _ in Page(shown).elements}
        assert tags <= {"div", "code", "b", "table", "thead", "tbody", "tr", "th", "td"}
        assert html.escape(PLAIN) in shown


def test_a_terminal_gets_no_control_character(tmp_path):
    other = tmp_path / "other.db"
    other.write_bytes(hostile().read_bytes())
    shown = [
        str(nethook.open_run(hostile()).findings),
        repr(nethook.open_run(hostile())),
        CliRunner().invoke(app, ["diff", str(hostile()), str(other)]).output,
        CliRunner().invoke(app, ["report", str(tmp_path / "\x1b[31m<x>[bold]y[/].db")]).output,
        CliRunner().invoke(app, ["export", str(hostile()), "--format", "\x1b[31m[red]"]).output,
    ]
    for text in shown:
        assert all(char.isprintable() or char == "\n" for char in text), text
    assert "[bold]y[/]" in shown[3]  # no markup is read from it
    assert "[red]" in shown[4]


def test_a_difference_is_safe_as_a_page(tmp_path):
    from tests.figures.made import write_training
    from tests.figures.shared import hostile_name

    other = write_training(
        tmp_path / "b.db", 30, findings=[], rename=hostile_name, change_at=9, info={"x": HOSTILE}
    )
    target = tmp_path / "d.html"
    done = CliRunner().invoke(app, ["diff", str(hostile()), str(other), "-o", str(target)])
    assert done.exit_code == 1
    assert all(char.isprintable() or char == "\n" for char in done.output)
    page = Page(target.read_text(encoding="utf-8"))
    assert not {tag for tag, _ in page.elements} & {"img", "svg"}
    for figure in page.figures.values():
        assert all("<" not in OURS.sub("", text) for text in strings(figure))


def test_a_spreadsheet_gets_no_formula(tmp_path):
    files = export(hostile(), "csv", tmp_path / "out")
    cells = 0
    for path in files:
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.reader(stream):
                for cell in row:
                    cells += 1
                    if re.match(r"\s*[=+@-]", cell):
                        float(cell)  # a number may be negative; nothing else may begin so
    assert cells > 1000
