"""The page under a path of a proxy, and by the proxy's name."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
from urllib.parse import quote

import pytest

from nethook.errors import OptionError
from nethook.page.folder import Folder
from nethook.page.live.base_path import base_path, with_base, without_base
from nethook.page.live.serving import start
from tests.figures.shared import training
from tests.page.live.client import Client

BASE = "/user/me/proxy/8420"
TOKEN = "t" * 43


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(Folder(training()), base=BASE, hosts=["hub.example.org"], token=TOKEN)


@pytest.fixture(params=["kept", "taken off"])
def prefix(request) -> str:
    """What the proxy leaves of the path in its requests."""
    return BASE if request.param == "kept" else ""


KNOWN = {"authorization": f"Bearer {TOKEN}", "host": "hub.example.org"}


@pytest.mark.parametrize(
    ("given", "path"), [("/proxy/8420/", "/proxy/8420"), ("/a", "/a"), ("", ""), ("/", "")]
)
def test_a_slash_at_the_end_makes_no_difference(given, path):
    assert base_path(given) == path


@pytest.mark.parametrize(
    "given", ["proxy", "//evil.org/x", "/a b", "/a/../b", "/a?b", '/a"b', "https://x"]
)
def test_what_is_no_path_is_refused(given):
    with pytest.raises(OptionError, match="`--base-path` must be a path such as /proxy/8420/; got"):
        base_path(given)


def test_only_the_whole_path_is_taken_off():
    assert without_base(f"{BASE}/run/x", BASE) == "/run/x"
    assert without_base(BASE, BASE) == "/"
    assert without_base(f"{BASE}0/run", BASE) == f"{BASE}0/run"
    assert without_base("/run/x", BASE) == "/run/x"


def test_texts_of_a_run_are_not_links():
    assert (
        with_base('<a href="/run/a">href=&#34;/b</a>', "/p")
        == '<a href="/p/run/a">href=&#34;/b</a>'
    )


def test_files_are_under_the_path(client, prefix):
    page = client.get(f"{prefix}/", **KNOWN).text
    assert f'data-base="{BASE}"' in page
    loaded = re.findall(r'(?:src|href)="(/[^"]*)"', page)
    assert len(loaded) == 4
    for address in loaded:
        assert address.startswith(f"{BASE}/looks/")
        asked = address if prefix else address.removeprefix(BASE)
        assert client.get(asked, **KNOWN).status_code == 200


def test_links_of_every_view_are_under_the_path_and_lead_somewhere(client, prefix):
    def view(at: str):
        return client.get(f"{prefix}/view?at={quote(at)}", **KNOWN).json()

    run = re.findall(r'href="([^"]*/run/[^"]*)"', view(f"{BASE}/")["frame"])[0]
    seen = set()
    for at in (run, f"{run}/layer", f"{run}/findings", f"{run}/model"):
        for link in re.findall(r'href="(/[^"]*)"', view(at)["frame"]):
            assert link.startswith(f"{BASE}/"), link
            seen.add(link.partition("?")[0])
    assert len(seen) > 4
    for link in seen:
        assert "There is nothing here" not in view(link)["frame"]
    # Sections that come later, without their frame, have it as well.
    first = view(run)
    have = json.dumps({"key": first["key"], "tags": {}})
    again = client.get(f"{prefix}/view?at={quote(run)}", **KNOWN, Nethook_Have=have).json()
    links = [
        link
        for s in again["sections"].values()
        for link in re.findall(r'href="(/[^"]*)"', s["html"])
    ]
    assert links
    assert all(link.startswith(f"{BASE}/") for link in links)


def test_the_token_becomes_a_cookie_of_the_path(client, prefix):
    answered = client.get(f"{prefix}/run/x?token={TOKEN}&step=3", host="hub.example.org")
    assert answered.status_code == 302
    assert answered.headers["location"] == f"{BASE}/run/x?step=3"
    cookie = answered.headers["set-cookie"]
    assert f"Path={BASE}/;" in cookie
    assert "HttpOnly" in cookie
    name = cookie.partition("=")[0]
    known = client.get(f"{prefix}/", host="hub.example.org", cookie=f"{name}={TOKEN}")
    assert known.status_code == 200


@pytest.mark.parametrize("address", ["/", "/view?at=/", "/metrics", "/looks/page.js"])
def test_neither_switches_the_token_off(client, prefix, address):
    assert client.get(f"{prefix}{address}", host="hub.example.org").status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example.org", "example.org", "hub.example.org.evil.org", ""]
)
def test_other_hosts_are_refused(client, host):
    answered = client.get("/", **{**KNOWN, "host": host})
    assert answered.status_code == 403
    assert "--allow-host" in answered.text


def test_a_port_and_capitals_of_the_host_make_no_difference(client):
    for host in ("hub.example.org:443", "Hub.Example.ORG"):
        assert client.get("/", **{**KNOWN, "host": host}).status_code == 200


def test_events_come_under_the_path():
    served = start(training(), port=0, base=f"{BASE}/", allow_hosts=["hub.example.org"])
    thread = threading.Thread(target=served.run)
    thread.start()
    try:
        assert served.address.startswith(f"https://hub.example.org{BASE}/run/")
        at = quote(served.address.removeprefix("https://hub.example.org"))
        request = urllib.request.Request(
            f"http://127.0.0.1:{served.server.port}{BASE}/events?at={at}",
            headers={"Authorization": f"Bearer {served.token}", "Host": "hub.example.org"},
        )
        with urllib.request.urlopen(request, timeout=20) as stream:
            assert stream.headers["Content-Type"].startswith("text/event-stream")
            lines = [stream.readline().decode() for _ in range(3)]
        assert lines[0] == "retry: 1000\n"
        assert re.fullmatch(r"data: [0-9a-f]{12}\n", lines[2])
    finally:
        served.stop()
        thread.join(20)


@pytest.mark.parametrize("name", ["https://hub.example.org", "hub:8000", "a/b", "*", "", "-x"])
def test_what_is_no_host_name_is_refused(name):
    with pytest.raises(OptionError, match="`--allow-host` must be the name of a host"):
        start(training(), port=0, allow_hosts=[name])
