"""A browser for all tests, and a page that notes everything that should not happen."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

from tests.browser.pages import link

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "build" / "browser"
# There is no graphics card where tests run, and shared memory may be small in a container.
FLAGS = ["--disable-gpu", "--disable-dev-shm-usage", "--disable-smooth-scrolling"]
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    assert path, "there is no Chromium here: type `make browser`, which installs it"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield launched
        launched.close()


@dataclass
class Opened:
    """A page, and what went wrong on it."""

    page: Page
    problems: list[str] = field(default_factory=list)

    def picture(self, name: str) -> None:
        """Keep what is seen, as an artefact."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.evaluate("window.scrollTo({top: 0, behavior: 'instant'})")
        self.page.wait_for_timeout(150)
        path = PICTURES / f"{name}.png"
        try:
            self.page.screenshot(path=path, full_page=True, timeout=60_000)
        except TimeoutError:
            # A browser without a graphics card now and then never paints the frame that a picture
            # waits for. Bringing the page to the front asks for a new one.
            self.page.bring_to_front()
            self.page.screenshot(path=path, full_page=True, timeout=120_000)

    def leave(self) -> None:
        """Ask nothing more of a server that is about to end."""
        self.page.goto("about:blank")

    def until(self, expression: str, timeout: float = 30.0) -> None:
        """Wait until something is so. (The page's policy forbids what Playwright would do.)"""
        deadline = time.monotonic() + timeout
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline, f"it never was: {expression}"
            self.page.wait_for_timeout(50)

    def draw_all(self) -> int:
        """Scroll until every figure that is not folded away is drawn; how many there are."""
        shown = "[...document.querySelectorAll('.figure')].filter((f) => f.checkVisibility())"
        for _ in range(60):
            left = self.page.evaluate(
                f"""() => {{
                    const left = {shown}.filter((f) => f.dataset.drawn !== 'yes');
                    const place = {{block: 'center', behavior: 'instant'}};
                    if (left.length) left[0].scrollIntoView(place);
                    return left.length;
                }}"""
            )
            if not left:
                break
            self.page.wait_for_timeout(100)
        assert not left, f"{left} figures were not drawn"
        return int(self.page.evaluate(f"{shown}.length"))


@pytest.fixture
def visit(browser):
    """Opens a file or an address; at the end of the test nothing may have gone wrong on it."""
    contexts, opened = [], []

    def open_it(
        target: Path | str, *, width=1280, height=800, scheme="light", touch=False
    ) -> Opened:
        address = target if isinstance(target, str) else target.as_uri()
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=touch
        )
        contexts.append(context)
        page = context.new_page()
        made = Opened(page)
        opened.append(made)
        page.on("console", lambda m: made.problems.append(f"console: {m.type} {m.text}"))
        page.on("pageerror", lambda error: made.problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: made.problems.append("dialog") or dialog.dismiss())
        page.on("request", lambda request: made.problems.extend(outside(request.url, address)))
        page.add_init_script("window.pwned = () => console.log('pwned')")
        page.goto(link(address))
        page.wait_for_selector("html[data-ready=yes]")
        return made

    yield open_it
    for context in contexts:
        context.close()
    assert [problem for each in opened for problem in each.problems] == []


def outside(url: str, opened: str) -> list[str]:
    """A request that leaves the file, or the server that is asked."""
    own = "/".join(opened.split("/")[:3]) + "/" if opened.startswith("http") else "file:"
    return [] if url.startswith((own, "data:", "blob:")) else [f"request: {url}"]


ANY: Final = ("minor", "moderate", "serious", "critical")
SERIOUS: Final = ("serious", "critical")


def violations(page: Page, impacts: tuple[str, ...] = ANY) -> list[str]:
    """What hinders people who do not see or do not use a mouse, as axe tells."""
    return [
        f"{violation['id']}: {violation['nodes'][0]['html'][:200]}"
        for violation in Axe().run(page).response["violations"]
        if violation["impact"] in impacts
    ]
