"""The token: who has it, how it leaves the address, and the file that it can be kept in."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.errors import OptionError
from nethook.page.live.tokens import (
    Answer,
    Asked,
    TokenCheck,
    cookie_name,
    link_with,
    new_token,
    token_of_file,
)

TOKEN = "r5lT8zv0bqJm1CwYd-3xKoNfHs_7UeGiP2aQ4ZtRk6B"  # the same in every process that collects
HOST = "127.0.0.1:8420"
CHECK = TokenCheck(TOKEN)


def asked(path: str = "/", query: str = "", method: str = "GET", body: bytes = b"", **headers: str):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Asked(method, path, query, {"host": HOST, **named}, lambda most: body[: most + 1])


def answer(*args: object, **named: object) -> Answer:
    found = CHECK.answer(asked(*args, **named))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_a_token_has_256_bits_and_is_another_each_time() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert min(len(new_token()) for _ in range(100)) >= 43  # 6 bits each


def test_without_a_token_everybody_may_go_on() -> None:
    assert TokenCheck("").answer(asked()) is None
    assert TokenCheck("").answer(asked(query="token=x", cookie="nethook-token-8420=")) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {TOKEN}"},
        {"authorization": f"bearer   {TOKEN} "},
        {"cookie": f"nethook-token-8420={TOKEN}"},
        {"cookie": f"a=b; nethook-token-8420=old; nethook-token-8420={TOKEN}; c"},
        {"cookie": f"x={{{{;;nethook-token-8420={TOKEN}"},
    ],
)
def test_who_has_the_token_may_go_on(headers: dict[str, str]) -> None:
    assert CHECK.answer(asked(**headers)) is None
    assert CHECK.answer(asked(method="POST", **headers)) is None


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": TOKEN},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": "Bearer \udcff\xe9"},
        {"cookie": f"nethook-token-8421={TOKEN}"},  # of a page at another port
        {"cookie": f"nethook-token={TOKEN}"},
        {"cookie": "nethook-token-8420="},
        {"cookie": TOKEN},
    ],
)
def test_who_has_not_may_not(headers: dict[str, str]) -> None:
    for method in ("GET", "POST", "HEAD"):
        assert answer(method=method, **headers).status == 401


@given(st.text(max_size=60))
def test_no_other_text_is_the_token(text: str) -> None:
    headers = {"authorization": f"Bearer {text}", "cookie": f"{cookie_name(HOST)}={text}"}
    assert answer(query=urlencode({"token": text}, errors="replace"), **headers).status == 401


def test_the_token_leaves_the_address() -> None:
    given = answer("/run/a b/layer", f"at=a%2Fb&token={TOKEN}&step=3&%74oken=x&runs=x~y,z&empty=")
    assert given.status == 302
    assert given.headers["Location"] == "/run/a%20b/layer?at=a%2Fb&step=3&runs=x~y,z&empty="
    assert given.headers["Set-Cookie"] == (
        f"nethook-token-8420={TOKEN}; Path=/; HttpOnly; SameSite=Strict"
    )
    assert given.headers["Cache-Control"] == "no-store"
    assert TOKEN not in given.text
    # Also one that is wrong, of whoever is in already.
    old = answer("/", "token=old", cookie=f"nethook-token-8420={TOKEN}")
    assert (old.status, old.headers["Location"]) == (302, "/")


@given(path=st.text(max_size=30), rest=st.text(max_size=20))
def test_one_is_led_nowhere_else(path: str, rest: str) -> None:
    query = f"token={TOKEN}&x={quote(rest, errors='replace')}"
    to = answer(f"/{path}".encode("utf-8", "replace").decode(), query).headers["Location"]
    assert to.startswith("/")
    assert to.isascii()
    assert to.isprintable()
    assert "\\" not in to
    assert (urlsplit(to).scheme, urlsplit(to).netloc) == ("", "")
    assert "token" not in urlsplit(to).query.partition("x=")[0]


@pytest.mark.parametrize("path", ["//evil.example/", "///evil.example", "/\\evil.example", "//"])
def test_an_address_with_two_slashes_is_no_other_host(path: str) -> None:
    to = answer(path, f"token={TOKEN}").headers["Location"]
    assert to.startswith("/")
    assert not to.startswith(("//", "/\\"))


def test_from_another_site_a_page_leads_on() -> None:
    """Along a redirect that began elsewhere browsers would not send the new cookie."""
    given = answer("/run/a'\"<b>", f"token={TOKEN}", sec_fetch_site="cross-site")
    assert given.status == 200
    assert 'content="0; url=/run/a%27%22%3Cb%3E"' in given.text
    assert "HttpOnly" in given.headers["Set-Cookie"]
    assert TOKEN not in given.text


@pytest.mark.parametrize(
    ("form", "status"),
    [
        (f"token={TOKEN}", 303),
        (f"token=+{TOKEN}%0D%0A", 303),
        (f"token={quote(link_with('http://127.0.0.1:8420/run/x', TOKEN))}", 303),
        ("token=", 401),
        ("", 401),
        (f"other={TOKEN}", 401),
        ("token=http%3A%2F%2F%5B", 401),  # no address at all
        ("&".join(["token=x"] * 1000), 401),
        ("%ff%00=%", 401),
    ],
)
def test_the_token_in_a_form(form: str, status: int) -> None:
    kind = "application/x-www-form-urlencoded; charset=utf-8"
    found = answer("/run/x", "", "POST", form.encode(), content_type=kind)
    assert found.status == status
    assert ("Set-Cookie" in found.headers) == (status == 303)


def test_a_browser_gets_a_page_and_a_script_a_line() -> None:
    page = answer(accept="text/html,*/*")
    assert "<form" in page.text
    assert "--token-file" in page.text
    line = answer(accept="*/*").text
    assert line == "A token is needed: use the link that nethook printed.\n"
    assert "not the token of this page" in answer("/", "token=old", accept="text/html").text


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1:8420", "nethook-token-8420"), ("[::1]:9", "nethook-token-9"),
        ("localhost", "nethook-token-80"), ("[::1]", "nethook-token-80"), ("", "nethook-token-80"),
    ],
)  # fmt: skip
def test_pages_at_several_ports_have_several_cookies(host: str, name: str) -> None:
    assert cookie_name(host) == name


# -- the file --------------------------------------------------------------------------------------


def test_a_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    before = os.umask(0)
    try:
        token = token_of_file(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == f"{token}\n"
    assert token_of_file(path) == token
    assert len(token) >= 43


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    token_of_file(path)
    path.chmod(mode)
    with pytest.raises(OptionError, match=rf"its mode is {mode:04o}. Type: chmod 600 "):
        token_of_file(path)


@pytest.mark.parametrize("text", ["", "short", "two tokens" * 10, "é" * 40, "x" * 600, "\0" * 40])
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(OptionError, match="must hold one token"):
        token_of_file(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)  # must not be waited for
    with pytest.raises(OptionError, match="must be a regular file"):
        token_of_file(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OptionError, match="must be a regular file"):
        token_of_file(tmp_path / "folder")
    token_of_file(tmp_path / "token")
    (tmp_path / "link").symlink_to(tmp_path / "token")
    with pytest.raises(OptionError, match="cannot be read"):
        token_of_file(tmp_path / "link")
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    with pytest.raises(OptionError, match="cannot be"):
        token_of_file(tmp_path / "dangling")
    assert not (tmp_path / "none").exists()
    with pytest.raises(OptionError, match="cannot be created"):
        token_of_file(tmp_path / "none" / "token")
    with pytest.raises(OptionError, match="cannot be created"):
        token_of_file(tmp_path / "a\0b")


def test_a_token_file_that_cannot_be_written_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty one would be refused at each later start."""

    def full(opened: int, *_: object, **__: object) -> NoReturn:
        os.close(opened)
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "token"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdopen", full)
        with pytest.raises(OptionError, match="cannot be written: "):
            token_of_file(path)
    assert not path.exists()
    assert len(token_of_file(path)) >= 43
