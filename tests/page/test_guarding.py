"""Who may ask: names of this machine, and from elsewhere whoever has the token."""

from __future__ import annotations

import pytest

from nethook.page.app import make_app
from nethook.page.folder import Folder
from nethook.page.guarding import COOKIE, host_of, is_allowed, is_local


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("127.0.0.1:8420", "127.0.0.1"), ("LOCALHOST", "localhost"), ("[::1]:80", "::1"),
        ("[::1]", "::1"), ("[::1", ""), ("a:b", ""), ("", ""), ("evil.example:80", "evil.example"),
        ("127.0.0.1.evil.example", "127.0.0.1.evil.example"), ("[::1]x", ""),
    ],
)  # fmt: skip
def test_the_name_in_a_header(header: str, name: str) -> None:
    assert host_of(header) == name


@pytest.mark.parametrize(
    ("header", "bound", "allowed"),
    [
        ("127.0.0.1:8420", "127.0.0.1", True),
        ("localhost:1", "127.0.0.1", True),
        ("[::1]:1", "::1", True),
        ("evil.example", "127.0.0.1", False),
        ("localhost.evil.example", "127.0.0.1", False),
        ("192.168.1.7", "127.0.0.1", False),
        ("", "127.0.0.1", False),
        ("192.168.1.7:8420", "0.0.0.0", True),  # an address cannot be made to point elsewhere
        ("evil.example", "0.0.0.0", False),
        ("box.example", "box.example", True),
    ],
)
def test_which_names_are_ours(header: str, bound: str, allowed: bool) -> None:
    assert is_allowed(header, bound) is allowed


def test_which_addresses_are_local() -> None:
    assert all(is_local(each) for each in ("127.0.0.1", "localhost", "::1", "127.8.8.8"))
    assert not any(is_local(each) for each in ("0.0.0.0", "::", "192.168.1.7", "box"))


@pytest.fixture
def client(tmp_path):
    return make_app(Folder(tmp_path)).server.test_client()


def test_foreign_names_other_sites_and_other_methods_are_refused(client) -> None:
    ours = {"Host": "127.0.0.1:8420"}
    assert client.get("/", headers=ours).status_code == 200
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    crossing = {**ours, "Sec-Fetch-Site": "cross-site"}
    asked = client.post("/_dash-update-component", json={}, headers=crossing)
    assert asked.status_code == 403
    assert client.delete("/", headers=ours).status_code == 405
    large = client.post("/_dash-update-component", data=b"x" * (2 << 20), headers=ours)
    assert large.status_code in (400, 413, 415)


def test_the_policy_lets_nothing_out(client) -> None:
    answer = client.get("/", headers={"Host": "localhost"})
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in answer.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in policy["script-src"]
    text = answer.get_data(as_text=True)
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_dash_has_no_tools_for_developers(client) -> None:
    text = client.get("/", headers={"Host": "localhost"}).get_data(as_text=True)
    assert '"ui":false' in text.replace(" ", "")
    assert "hot_reload" not in text


def test_another_address_needs_the_token(tmp_path) -> None:
    client = make_app(Folder(tmp_path), bound="0.0.0.0", token="secret").server.test_client()
    ours = {"Host": "192.168.1.7:8420"}
    assert client.get("/", headers=ours).status_code == 401
    assert client.get("/?token=wrong", headers=ours).status_code == 401
    assert client.get("/looks/page.js", headers=ours).status_code == 401
    given = client.get("/run/abc?token=secret", headers=ours)
    assert given.status_code == 302
    assert given.headers["Location"] == "/run/abc"  # without the token
    assert "HttpOnly" in given.headers["Set-Cookie"]
    assert "SameSite=Strict" in given.headers["Set-Cookie"]
    client.set_cookie(COOKIE, "secret", domain="192.168.1.7")
    assert client.get("/", headers=ours).status_code == 200
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403


def test_no_file_but_the_page_s_own_is_served(client) -> None:
    ours = {"Host": "localhost"}
    assert client.get("/looks/page.css", headers=ours).status_code == 200
    for name in ("app.py", "..%2fapp.py", "%2e%2e/%2e%2e/pyproject.toml", "report.js"):
        assert client.get(f"/looks/{name}", headers=ours).status_code in (200, 404)
        text = client.get(f"/looks/{name}", headers=ours).get_data(as_text=True)
        assert "import " not in text.partition("\n")[0]
