"""The token in a real browser: by link, by hand, from another site, and out of sight."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nethook.page.live.token_page import forwarding_page
from tests.browser.conftest import violations
from tests.browser.pages import link, served


@pytest.fixture
def page(browser):
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with served(tmp_path_factory.mktemp("runs")) as address:
        yield address


def token_of(site: str) -> str:
    return link(site).partition("token=")[2]


def is_open(page) -> None:
    page.wait_for_selector("text=No runs yet")


def test_a_link_opens_the_page_and_leaves_no_token(page, site):
    asked = []
    page.on("request", lambda request: asked.append(request))
    page.goto(link(f"{site}/?find=x~y"))
    page.wait_for_selector("html[data-ready=yes]")
    assert page.url == f"{site}/?find=x~y"
    token = token_of(site)
    assert token not in page.content()
    assert page.evaluate("document.cookie") == ""  # scripts do not see it
    assert page.evaluate("performance.getEntriesByType('navigation')[0].name") == page.url
    assert token not in page.evaluate("JSON.stringify([history.state, {...sessionStorage}])")
    assert [request.url for request in asked if token in request.url] == [asked[0].url]
    assert not any("referer" in request.all_headers() for request in asked)
    page.goto(f"{site}/")  # and from now on there is no need of it
    is_open(page)
    page.goto("about:blank")


def test_the_token_can_be_pasted(page, site):
    page.goto(f"{site}/?find=x")
    assert page.get_by_label("Token or link").is_visible()
    assert "nethook ui" in page.locator("main").text_content()
    assert violations(page) == []
    page.fill("#token", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=That is not the token of this page")
    page.fill("#token", f"  {link(site)} ")
    page.click("button")
    page.wait_for_selector("html[data-ready=yes]")
    assert page.url == f"{site}/?find=x"
    page.goto("about:blank")


def test_a_link_on_another_site_works(page, site):
    """A browser sends no new cookie along a redirect that began on another site."""

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = f"<a href='{link(site)}'>the run</a>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.goto(f"http://localhost:{server.server_port}/")  # to browsers another site
        page.click("a")
        is_open(page)
        assert page.url == f"{site}/"
        page.goto("about:blank")
        server.shutdown()


def test_the_file_that_a_browser_is_started_with_leads_to_the_page(page, site, tmp_path):
    path = tmp_path / "open.html"
    path.write_text(forwarding_page(link(site)))
    page.goto(path.as_uri())
    is_open(page)
    assert page.url == f"{site}/"
    page.goto("about:blank")


def test_two_pages_in_one_browser(page, site, tmp_path):
    with served(tmp_path) as other:
        for address in (site, other):
            page.goto(link(f"{address}/"))
            is_open(page)
        for address in (site, other):
            page.goto(f"{address}/")
            is_open(page)
        page.goto("about:blank")


def test_a_page_at_another_port_cannot_read_it(page, site, tmp_path):
    """Its requests carry the cookie, since cookies know no ports; the answers are not for it."""
    with served(tmp_path) as other:
        for address in (site, other):
            page.goto(link(f"{address}/"))
            is_open(page)
        read = """(site) => fetch(site, {method: METHOD, credentials: 'include', mode: 'cors'})
            .then((answer) => answer.status, (error) => 'refused')"""
        for method in ("'GET'", "'POST'"):
            assert page.evaluate(read.replace("METHOD", method), f"{site}/") == "refused"
        page.goto("about:blank")
