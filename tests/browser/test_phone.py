"""A phone: nothing is cut off that a finger cannot bring into view."""

from __future__ import annotations

import shutil

import pytest

from nethook.page.folder import Folder
from tests.browser.pages import served
from tests.figures.shared import changed, training

LONG = "a-script-with-a-long-name-2026-11-19T21-58-45"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    runs = tmp_path_factory.mktemp("phone") / "runs"
    runs.mkdir()
    shutil.copy(training(), runs / f"{LONG}.db")
    shutil.copy(changed(), runs / f"{LONG[:-1]}6.db")
    ids = {entry.name: entry.id for entry in Folder(runs).entries()}
    with served(runs) as address:
        yield address, ids[LONG], ids[f"{LONG[:-1]}6"]


def test_runs_with_long_names_are_compared(visit, site):
    address, one, two = site
    opened = visit(f"{address}/compare?runs={one}~{two}", width=390, height=844, touch=True)
    opened.draw_all()
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # Captions have no room for the names of the lines: these stand below.
    names = page.locator("#frame-runs .legend .legendtext").all_text_contents()
    assert sum("training" in name for name in names) == 2
    captions = page.locator("#frame-runs .annotation-text").all_text_contents()
    assert "loss" in [caption.strip() for caption in captions]
    edge = "document.querySelector('#frame-runs').getBoundingClientRect().bottom"
    low = "document.querySelector('#frame-runs .legend').getBoundingClientRect().bottom"
    assert page.evaluate(f"{low} <= {edge}")
    opened.picture("page-phone-long-names")


def test_names_of_lines_stand_in_the_captions_where_there_is_room(visit, site):
    address, one, two = site
    opened = visit(f"{address}/compare?runs={one}~{two}", width=1366)
    opened.draw_all()
    assert opened.page.locator("#frame-runs .legend .legendtext").count() == 0
    captions = opened.page.locator("#frame-runs .annotation-text").all_text_contents()
    assert any("loss" in caption and "training" in caption for caption in captions)


@pytest.mark.parametrize("view", ["", "/layer", "/health"])
def test_the_view_that_is_open_is_in_sight_among_all(visit, site, view):
    address, one, _ = site
    opened = visit(f"{address}/run/{one}{view}", width=390, height=844, touch=True)
    box = opened.page.locator(".bar nav .here").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert opened.page.evaluate("window.scrollY") == 0
