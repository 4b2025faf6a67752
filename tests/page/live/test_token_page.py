"""The pages before the page: plain HTML, without a script."""

from __future__ import annotations

from nethook.page.live.token_page import forwarding_page, token_page
from tests.figures.pages import Page

EVIL = "<script>pwned()</script>\"'>&"


def test_the_form_sends_the_token_and_nothing_else() -> None:
    page = Page(token_page())
    (form,) = (attrs for tag, attrs in page.elements if tag == "form")
    assert str(form["method"]).lower() == "post"
    inputs = [attrs for tag, attrs in page.elements if tag == "input"]
    assert [attrs.get("name") for attrs in inputs] == ["token"]
    assert page.scripts == []
    assert page.open == []


def test_what_was_wrong_is_said_and_escaped() -> None:
    page = Page(token_page(EVIL))
    assert EVIL in page.text
    assert page.scripts == []
    assert any(attrs.get("role") == "alert" for _, attrs in page.elements)
    assert not any(attrs.get("role") == "alert" for _, attrs in Page(token_page()).elements)


def test_forwarding_leads_to_the_address_alone() -> None:
    page = Page(forwarding_page(f"/run/a?x={EVIL}"))
    (link,) = (attrs for tag, attrs in page.elements if tag == "a")
    assert link["href"] == f"/run/a?x={EVIL}"
    refresh = [attrs["content"] for _, attrs in page.elements if attrs.get("http-equiv")]
    assert refresh == [f"0; url=/run/a?x={EVIL}"]
    assert page.scripts == []
    assert ("meta", {"name": "referrer", "content": "no-referrer"}) in page.elements
