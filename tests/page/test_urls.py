"""Addresses: taken apart with care, and put together again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.page.urls import VIEWS, link, read_place, run_link, site_link


def test_places() -> None:
    assert read_place("/", "").kind == "list"
    assert read_place(None, None).kind == "list"
    assert read_place("/compare", "?runs=a~b").text("runs") == "a~b"
    place = read_place("/run/abc/layer", "?at=a.b&step=7&q=spread&phase=eval")
    assert (place.kind, place.run, place.view) == ("run", "abc", "layer")
    assert (place.site(), place.number("step"), place.quantity("x")) == ("a.b", 7, "spread")
    assert place.phase() == "eval"
    for path in ("/run", "/run/a/b/c", "/run/a/nosuch", "/etc/passwd", "/run/../../etc"):
        assert read_place(path, "").kind == "nowhere"


def test_what_is_odd_is_left_out() -> None:
    place = read_place("/run/a", "?step=-1&q=nosuch&phase=x&all=yes&fold=&n=９")
    assert place.number("step") is None
    assert place.quantity("spread") == "spread"
    assert place.phase() == "train"
    assert not place.flag("all")
    assert place.names("fold") == []
    assert place.names("nosuch") is None
    assert read_place("/run/a", "?step=99999999999999999999").number("step") is None


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=20), st.text(max_size=40), st.sampled_from(sorted(VIEWS)))
def test_any_name_survives_an_address(run: str, site: str, view: str) -> None:
    path, _, search = site_link(run or "r", site).partition("?")
    place = read_place(path, f"?{search}")
    if "/" not in run.strip("/") and place.kind == "run" and len(site) < 500 and site != ".":
        assert place.site() == site
    assert run_link("id", view).startswith("/run/id")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=40), st.text(max_size=60))
def test_no_address_raises(path: str, search: str) -> None:
    place = read_place(path, search)
    place.number("step")
    place.site()
    assert place.kind in ("list", "run", "compare", "nowhere")


def test_links_leave_out_what_is_empty() -> None:
    assert link("/", find="", from_=None) == "/"
    assert link("/compare", runs="a~b") == "/compare?runs=a~b"
    assert run_link("a/b", "depth", step=0) == "/run/a%2Fb/depth?step=0"
