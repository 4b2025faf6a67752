"""The documentation, opened as files: it is drawn, fetches nothing, and can be searched."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.browser.conftest import ROOT, SERIOUS, Opened, outside, violations


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    for name in ("examples", "src", "tests"):  # which pages show parts of
        (folder / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "build" / "site"


@pytest.fixture
def visit(browser):
    """Opens a page of the site; at the end of the test nothing may have gone wrong on it."""
    opened = []

    def open_it(path, *, width=1280, scheme="light"):
        viewport = {"width": width, "height": 844}
        page = browser.new_page(viewport=viewport, color_scheme=scheme)
        made = Opened(page)
        opened.append(made)
        page.on("pageerror", lambda error: made.problems.append(f"error: {error}"))
        page.on("request", lambda request: made.problems.extend(outside(request.url, "file:")))
        page.goto(path.as_uri())
        return made

    yield open_it
    for each in opened:
        each.page.close()
    assert [problem for each in opened for problem in each.problems] == []


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 390, "light")],
)
@pytest.mark.parametrize("path", ["index", "gallery", "findings", "reference/python", "watch"])
def test_a_page_is_drawn(visit, site, path, name, width, scheme):
    opened = visit(site / f"{path}.html", width=width, scheme=scheme)
    page = opened.page
    assert page.locator("h1").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # nothing sticks out
    broken = "[...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"
    assert page.evaluate(broken) == []
    assert page.evaluate("document.body.dataset.mdColorScheme") == (
        "slate" if scheme == "dark" else "default"
    )
    opened.picture(f"site-{path.replace('/', '-')}-{name}")


def test_the_search_works_without_a_server(visit, site):
    opened = visit(site / "index.html")
    page = opened.page
    page.keyboard.press("Control+k")
    field = page.locator("input[placeholder=Search]")
    field.wait_for()
    field.press_sequentially("replay", delay=50)
    page.get_by_text("Find the first NaN, and replay it").first.wait_for(timeout=20_000)
    assert field.input_value() == "replay"
    opened.picture("site-search")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["index", "tutorials/find-a-bug", "findings"])
def test_it_is_accessible(visit, site, path, scheme):
    # The theme's own frame has lesser ones.
    assert violations(visit(site / f"{path}.html", scheme=scheme).page, SERIOUS) == []
