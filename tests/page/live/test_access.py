"""Who may ask: browsers that use a name of this machine and have the token."""

from __future__ import annotations

import pytest

from nethook.page.folder import Folder
from nethook.page.live.access import host_of, is_allowed, is_local
from nethook.page.live.app import make_app
from nethook.page.live.tokens import new_token


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


@pytest.mark.parametrize(
    ("bound", "host"), [("127.0.0.1", "127.0.0.1:8420"), ("0.0.0.0", "192.168.1.7:8420")]
)
def test_every_address_needs_the_token(tmp_path, bound, host) -> None:
    token = new_token()
    client = make_app(Folder(tmp_path), bound=bound, token=token).server.test_client()
    ours = {"Host": host}
    for path in ("/", "/?token=wrong", "/looks/page.js", "/_dash-layout", "/run/abc", "/nowhere"):
        assert client.get(path, headers=ours).status_code == 401
    asked = client.post("/_dash-update-component", json={}, headers=ours)
    assert asked.status_code == 401
    given = client.get(f"/run/abc?token={token}", headers=ours)
    assert given.status_code == 302
    assert given.headers["Location"] == "/run/abc"  # without the token
    assert given.headers["Set-Cookie"].startswith(f"nethook-token-8420={token};")
    assert "HttpOnly" in given.headers["Set-Cookie"]
    assert "SameSite=Strict" in given.headers["Set-Cookie"]
    assert given.headers["Referrer-Policy"] == "no-referrer"
    client.set_cookie("nethook-token-8420", token, domain=host.partition(":")[0])
    page = client.get("/", headers=ours)
    assert page.status_code == 200
    assert token not in page.text
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    assert client.get("/", headers={"Host": f"evil.example:{token}"}).status_code == 403


def test_a_script_has_the_token_in_a_header(tmp_path) -> None:
    token = new_token()
    client = make_app(Folder(tmp_path), token=token).server.test_client()
    ours = {"Host": "localhost:1", "Authorization": f"Bearer {token}"}
    assert client.get("/", headers=ours).status_code == 200
    assert client.post("/_dash-update-component", json={}, headers=ours).status_code == 400
    wrong = {**ours, "Authorization": f"Bearer {new_token()}"}
    refused = client.get("/", headers=wrong)
    assert (refused.status_code, refused.text.count("\n")) == (401, 1)
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")


def test_the_page_that_asks_for_the_token(tmp_path) -> None:
    token = new_token()
    client = make_app(Folder(tmp_path), token=token).server.test_client()
    ours = {"Host": "localhost:9", "Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
    asked = client.get("/run/abc?at=fc", headers=ours)
    assert asked.status_code == 401
    assert '<form method="post">' in asked.text
    assert "nethook ui" in asked.text
    assert "form-action 'self'" in asked.headers["Content-Security-Policy"]
    assert asked.headers["Referrer-Policy"] == "no-referrer"
    wrong = client.post("/run/abc?at=fc", data={"token": "wrong"}, headers=ours)
    assert wrong.status_code == 401
    assert "That is not the token" in wrong.text
    assert "Set-Cookie" not in wrong.headers
    for pasted in (token, f" {token}\n", f"http://127.0.0.1:9/run/x?token={token}"):
        given = client.post("/run/abc?at=fc", data={"token": pasted}, headers=ours)
        assert (given.status_code, given.headers["Location"]) == (303, "/run/abc?at=fc")
        assert given.headers["Set-Cookie"].startswith(f"nethook-token-9={token};")
        client.delete_cookie("nethook-token-9", domain="localhost")
    long = client.post("/", data={"token": "x" * 5000}, headers=ours)
    assert long.status_code == 401


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),  # a script
        ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),  # another port of this machine
        ({"Origin": "http://127.0.0.1:8420"}, True),
        ({"Origin": "http://127.0.0.1:9999"}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "http://["}, False),
    ],
)
def test_only_pages_of_this_server_may_post(client, headers, allowed) -> None:
    ours = {"Host": "127.0.0.1:8420", **headers}
    answer = client.post("/_dash-update-component", json={}, headers=ours)
    assert answer.status_code == (400 if allowed else 403)


def test_no_file_but_the_page_s_own_is_served(client) -> None:
    ours = {"Host": "localhost"}
    assert client.get("/looks/page.css", headers=ours).status_code == 200
    for name in ("app.py", "..%2fapp.py", "%2e%2e/%2e%2e/pyproject.toml", "report.js"):
        assert client.get(f"/looks/{name}", headers=ours).status_code in (200, 404)
        text = client.get(f"/looks/{name}", headers=ours).get_data(as_text=True)
        assert "import " not in text.partition("\n")[0]
