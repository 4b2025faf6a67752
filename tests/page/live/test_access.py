"""Who may ask: browsers that use a name of this machine and have the token."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from nethook.page.folder import Folder
from nethook.page.live.access import host_of, is_allowed, is_local
from nethook.page.live.tokens import new_token
from tests.page.live.client import Client


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
def client(tmp_path: Path) -> Client:
    return Client(Folder(tmp_path))


def test_foreign_names_other_sites_and_other_methods_are_refused(client: Client) -> None:
    assert client.get("/").status_code == 200
    assert client.get("/", Host="evil.example").status_code == 403
    assert client.post("/view", b"{}", Sec_Fetch_Site="cross-site").status_code == 403
    assert client.ask("DELETE", "/", b"", {}).status_code == 405
    assert client.post("/view", b"x" * (2 << 20)).status_code == 413


def test_the_policy_lets_nothing_out(client: Client) -> None:
    answer = client.get("/", Host="localhost")
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["script-src"] == "'self'"
    assert "http://" not in answer.text.replace("http://www.w3.org", "")
    assert "https://" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("bound", "host"), [("127.0.0.1", "127.0.0.1:8420"), ("0.0.0.0", "192.168.1.7:8420")]
)
def test_every_address_needs_the_token(tmp_path: Path, bound: str, host: str) -> None:
    token = new_token()
    client = Client(Folder(tmp_path), bound=bound, token=token)
    paths = ("/", "/?token=wrong", "/looks/page.js", "/view?at=/", "/events", "/fine", "/run/abc")
    for path in (*paths, "/nowhere"):
        assert client.get(path, Host=host).status_code == 401
    assert client.post("/view", b"{}", Host=host).status_code == 401
    given = client.get(f"/run/abc?token={token}", Host=host)
    assert given.status_code == 302
    assert given.headers["location"] == "/run/abc"  # without the token
    assert given.headers["set-cookie"].startswith(f"nethook-token-8420={token};")
    assert "HttpOnly" in given.headers["set-cookie"]
    assert "SameSite=Strict" in given.headers["set-cookie"]
    assert given.headers["referrer-policy"] == "no-referrer"
    page = client.get("/", Host=host, Cookie=f"nethook-token-8420={token}")
    assert page.status_code == 200
    assert token not in page.text
    assert client.get("/", Host="evil.example").status_code == 403
    assert client.get("/", Host=f"evil.example:{token}").status_code == 403


def test_a_script_has_the_token_in_a_header(tmp_path: Path) -> None:
    token = new_token()
    client = Client(Folder(tmp_path), token=token)
    ours = {"Host": "localhost:1", "Authorization": f"Bearer {token}"}
    assert client.get("/", **ours).status_code == 200
    assert client.get("/view?at=/", **ours).json()["new"]
    refused = client.get("/", **{**ours, "Authorization": f"Bearer {new_token()}"})
    assert (refused.status_code, refused.text.count("\n")) == (401, 1)
    assert refused.headers["www-authenticate"].startswith("Bearer")


def test_the_page_that_asks_for_the_token(tmp_path: Path) -> None:
    token = new_token()
    client = Client(Folder(tmp_path), token=token)
    ours = {"Host": "localhost:9", "Accept": "text/html", "Sec_Fetch_Site": "same-origin"}
    asked = client.get("/run/abc?at=fc", **ours)
    assert asked.status_code == 401
    assert '<form method="post">' in asked.text
    assert "nethook ui" in asked.text
    assert "form-action 'self'" in asked.headers["content-security-policy"]
    assert asked.headers["referrer-policy"] == "no-referrer"
    form = {**ours, "Content_Type": "application/x-www-form-urlencoded"}
    wrong = client.post("/run/abc?at=fc", b"token=wrong", **form)
    assert wrong.status_code == 401
    assert "That is not the token" in wrong.text
    assert "set-cookie" not in wrong.headers
    for pasted in (token, f" {token}\n", f"http://127.0.0.1:9/run/x?token={token}"):
        given = client.post("/run/abc?at=fc", urlencode({"token": pasted}).encode(), **form)
        assert (given.status_code, given.headers["location"]) == (303, "/run/abc?at=fc")
        assert given.headers["set-cookie"].startswith(f"nethook-token-9={token};")
    assert client.post("/", b"token=" + b"x" * 5000, **form).status_code == 401


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),  # a script
        ({"Sec_Fetch_Site": "same-origin", "Origin": "null"}, True),
        ({"Sec_Fetch_Site": "none"}, True),
        ({"Sec_Fetch_Site": "cross-site"}, False),
        ({"Sec_Fetch_Site": "same-site"}, False),  # another port of this machine
        ({"Origin": "http://127.0.0.1:8420"}, True),
        ({"Origin": "http://127.0.0.1:9999"}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "http://["}, False),
    ],
)
def test_only_pages_of_this_server_may_post(
    client: Client, headers: dict[str, str], allowed: bool
) -> None:
    assert client.post("/view", b"{}", **headers).status_code == (404 if allowed else 403)


def test_no_file_but_the_page_s_own_is_served(client: Client) -> None:
    assert client.get("/looks/page.css").status_code == 200
    for name in ("app.py", "..%2fapp.py", "%2e%2e/%2e%2e/pyproject.toml", "report.js"):
        assert client.get(f"/looks/{name}").status_code == 404
