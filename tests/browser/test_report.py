"""The report in a browser: it draws, it answers, and it sends nothing."""

from __future__ import annotations

import time

import numpy as np
import pytest

import nethook
from nethook.drawing.rendering.render import encode_codes
from nethook.drawing.training.heatmap import cells_of
from nethook.figures.reading import Reading
from tests.browser.conftest import PICTURES, violations
from tests.drawing.codes import decode_codes
from tests.figures.made import LAYERS
from tests.figures.shared import changed, folder, hostile, training


@pytest.fixture(scope="module")
def report():
    return nethook.figures.report(training(), folder() / "report.html")


@pytest.mark.parametrize(
    ("name", "width", "height", "scheme"),
    [
        ("light", 1280, 800, "light"),
        ("dark", 1280, 800, "dark"),
        ("laptop", 1366, 768, "light"),
        ("phone", 390, 844, "light"),
        ("phone-dark", 390, 844, "dark"),
    ],
)
def test_it_is_drawn_at_every_width_and_in_both_themes(visit, report, name, width, height, scheme):
    opened = visit(report, width=width, height=height, scheme=scheme, touch=width < 600)
    page = opened.page
    page.evaluate("document.querySelectorAll('details.plain').forEach((d) => { d.open = true })")
    page.locator("details.layer").nth(3).evaluate("(layer) => { layer.open = true }")
    assert opened.draw_all() >= 10
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # nothing sticks out
    paper = page.locator(".main-svg").first.evaluate(
        "(svg) => getComputedStyle(svg).backgroundColor"
    )
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 27, 33)"}[scheme]
    # plotly.js would offer to send figures to a service.
    offered = page.locator("[data-title]").evaluate_all("(all) => all.map((b) => b.dataset.title)")
    assert not [title for title in offered if "hare" in title or "loud" in title]
    opened.picture(f"report-{name}")


def test_colours_are_decoded_as_python_decodes_them(visit, report):
    opened = visit(report)
    opened.draw_all()
    figure = opened.page.locator("#heatmap-0 .graph")
    z, hover = figure.evaluate("(f) => [f.data[0].z, f.data[0].customdata]")
    grid = Reading(training()).needed_grid("gradients")
    cells = cells_of(grid)
    low, high = cells.ends()
    wanted = decode_codes(encode_codes(cells, low, high), low, high, log=True)
    np.testing.assert_allclose(np.moveaxis(np.array(hover), -1, 0), wanted, rtol=1e-9)
    np.testing.assert_allclose(np.array(z), np.log10(wanted[0]), rtol=1e-9)
    assert np.max(hover) == pytest.approx(grid.greatest.max(), rel=1e-12)


def test_the_switch_of_colours(visit, report):
    opened = visit(report)
    opened.draw_all()
    figure = opened.page.locator("#heatmap-0 .graph")
    read = "(f) => [f.layout.coloraxis.cmin, f.layout.coloraxis.cmax]"
    robust = figure.evaluate(read)
    figure.locator(".updatemenu-button").nth(1).click()
    everything = figure.evaluate(read)
    assert everything[0] < robust[0] < robust[1] < everything[1]


def test_the_theme_is_switched_by_hand(visit, report):
    opened = visit(report)
    opened.draw_all()
    opened.page.click("#theme")
    assert opened.page.evaluate("document.documentElement.dataset.theme") == "dark"
    shown = "document.querySelector('#overview .graph')"
    colour = f"{shown}._fullData.find((t) => t.name === 'training').line.color"
    opened.until(f"{colour} === '#4FA3E3'")
    opened.page.click("#theme")
    opened.until(f"{colour} === '#0072B2'")


def test_links_tabs_filter_and_folds(visit, report):
    opened = visit(report)
    page = opened.page
    page.click("#verdict li:nth-child(2) a")
    assert page.url.endswith("#finding-1")
    page.click("#finding-0 .chips a")  # from a finding to its layer, which unfolds
    assert page.locator("details.layer[open]").get_attribute("data-name") == "block.relu2"
    page.click("#tab-heatmap-1")
    assert page.locator("#heatmap-1").is_visible()
    assert not page.locator("#heatmap-0").is_visible()
    page.keyboard.press("ArrowRight")  # the keyboard does it too
    assert page.locator("#heatmap-2").is_visible()
    page.fill("#filter", "CONV")
    shown = page.locator("details.layer:visible").evaluate_all(
        "(all) => all.map((l) => l.dataset.name)"
    )
    assert shown == ["conv1", "block.conv2"]
    page.fill("#filter", "")
    page.click("#open-all")
    assert page.locator("details.layer[open]").count() == len(LAYERS)
    opened.draw_all()


def test_a_mark_on_the_loss_leads_to_its_finding(visit, report):
    opened = visit(report)
    opened.draw_all()
    figure = opened.page.locator("#overview .graph").first
    figure.evaluate(
        "(f) => window.scrollBy({top: f.getBoundingClientRect().top - 120, behavior: 'instant'})"
    )
    place = figure.locator(".xy20 .point").nth(1).bounding_box()
    opened.page.mouse.move(place["x"] + 5, place["y"] + 5)
    opened.page.wait_for_selector(".hoverlayer .hovertext, .hoverlayer .legend")
    opened.page.mouse.click(place["x"] + 5, place["y"] + 5)
    opened.page.wait_for_timeout(300)
    assert opened.page.url.endswith("#finding-1")


def test_one_cursor_reads_every_panel(visit, report):
    opened = visit(report)
    opened.draw_all()
    figure = opened.page.locator("#overview .graph").first
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 150)
    opened.page.wait_for_selector(".hoverlayer .legend")
    text = opened.page.locator(".hoverlayer .legend").first.text_content()
    assert all(name in text for name in ("training", "as used", "update / weight"))


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_it_is_accessible(visit, report, width, scheme):
    opened = visit(report, width=width, scheme=scheme)
    opened.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    opened.draw_all()
    assert violations(opened.page) == []


def test_a_script_of_others_would_not_run(visit, report):
    """The policy of the page holds even where escaping would fail."""
    bad = folder() / "bad.html"
    text = report.read_text(encoding="utf-8")
    markup = "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'><h1>"
    bad.write_text(text.replace("<h1>", markup), encoding="utf-8")
    opened = visit(bad)
    assert opened.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in problem for problem in opened.problems)
    opened.problems.clear()


def test_a_hostile_run_is_text(visit):
    opened = visit(nethook.figures.report(hostile(), folder() / "hostile.html"))
    opened.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    for tab in range(opened.page.locator("[role=tab]").count()):
        opened.page.locator("[role=tab]").nth(tab).click()
        opened.draw_all()
    assert opened.page.locator("main img, main a[href^=javascript], .figure a").count() == 0
    texts = opened.page.locator(".figure text").all_text_contents()
    assert any("<script>pwned()</sc" in text for text in texts)  # as letters
    assert not any("NaN%" in text for text in texts)
    opened.picture("report-hostile")


def test_a_difference_is_drawn(visit):
    from nethook.figures.difference import Difference
    from nethook.page.report.two_runs import write_page

    opened = visit(write_page(Difference(training(), changed()), folder() / "diff.html"))
    assert opened.draw_all() >= 2
    opened.picture("diff")


@pytest.mark.parametrize(("ending", "begin"), [("png", b"\x89PNG"), ("svg", b"<svg")])
def test_figures_are_saved_as_pictures(ending, begin, tmp_path):
    made = nethook.figures.overview(training())
    path = nethook.figures.save(made, tmp_path / f"a.{ending}", width=700)
    assert path.read_bytes().startswith(begin)


def test_a_saved_figure_offers_no_service_either(browser, tmp_path):
    path = nethook.figures.save(nethook.figures.overview(training()), tmp_path / "a.html")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector(".modebar-btn", state="attached")
    offered = page.locator("[data-title]").evaluate_all("(all) => all.map((b) => b.dataset.title)")
    page.close()
    assert offered
    assert not [title for title in offered if "hare" in title or "loud" in title]


def test_nothing_is_blank_in_a_full_page_picture_or_in_print(browser, report):
    """Nobody scrolls: what is further down is drawn all the same, and print shows every tab."""
    page = browser.new_page()
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    left = """[...document.querySelectorAll('.figure')]
        .filter((f) => f.clientWidth && f.dataset.drawn !== 'yes')"""
    deadline = time.monotonic() + 30
    while page.evaluate(f"{left}.length"):
        assert time.monotonic() < deadline
        page.wait_for_timeout(50)
    assert page.evaluate("window.scrollY") == 0
    hidden = page.locator(".pane.off")
    assert hidden.count() >= 8
    page.emulate_media(media="print")
    assert all(pane.is_visible() for pane in hidden.all())
    # A caption or a heading is on the same sheet as what it is of.
    style = "(all, name) => [...new Set(all.map((one) => getComputedStyle(one)[name]))]"
    assert page.locator(".pane").evaluate_all(style, "breakInside") == ["avoid"]
    assert page.locator("h2").evaluate_all(style, "breakAfter") == ["avoid"]
    heatmaps = page.locator(".pane .heatmaplayer image")
    assert heatmaps.count() >= 9
    assert all(
        image.evaluate("(i) => i.getAttribute('href').length > 100 && i.getBBox().width > 50")
        for image in heatmaps.all()
    )
    PICTURES.mkdir(parents=True, exist_ok=True)
    pages = page.pdf(path=PICTURES / "report.pdf", print_background=True)
    assert pages.startswith(b"%PDF")
    # A figure of colours is a picture in the file, and each of them is there.
    assert pages.count(b"/Subtype /Image") >= heatmaps.count()
    page.close()
