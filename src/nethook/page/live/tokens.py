"""The token that a browser or a script must show. Nothing here knows a web framework.

The link that is printed carries it. Whoever comes with the link is given a cookie, which scripts
cannot read and pages of other sites do not send, and goes on at the same address without the token:
it must not end in a history or a picture. A script sends `Authorization: Bearer TOKEN`. Everybody
else gets a page with a field for the token.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, unquote_plus, urlsplit

from nethook.errors import OptionError
from nethook.page.live.token_page import PAGE_HEADERS, forwarding_page, token_page

_BYTES: Final = 32  # 256 bits: nobody guesses it, so nobody has to count wrong guesses
_FITTING: Final = re.compile(r"[A-Za-z0-9_.~+/=-]{32,512}")
_FIELDS: Final = 64  # of a query or a form
_WRONG: Final = "That is not the token of this page. If nethook was restarted, use its new link."
_AS_IT_IS: Final = "%/?:@!$&'()*+,;=~"  # in a query
LONGEST_FORM: Final = 4096
"""Bytes of a form with a token in it."""


@dataclass(frozen=True)
class Asked:
    """A request as plain data.

    Arguments:
        method: `GET`, `POST`, …
        path: the path, decoded.
        query: what follows the question mark, as it was sent.
        headers: by name in lower case.
        body: reads what was sent, if it is not longer than a number of bytes; else b"".
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[int], bytes] = lambda _: b""


@dataclass(frozen=True)
class Answer:
    """What is answered in the place of the page."""

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(_BYTES)


def token_of_file(path: Path) -> str:
    """The token in a file that only its owner can read; where there is no file, it is made.

    Raises:
        OptionError: others can read the file, or there is no token in it.
    """
    shown = str(path)
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # no link, no waiting
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags, 0o600)
    except FileExistsError:
        pass
    except (OSError, ValueError) as error:
        raise OptionError(f"the token file {shown!r} cannot be created: {error}.") from None
    else:
        return _written(path, made)
    try:
        opened = os.open(path, os.O_RDONLY | flags)
    except OSError as error:
        raise OptionError(f"the token file {shown!r} cannot be read: {error}.") from None
    try:
        _check_owner(os.fstat(opened), shown)
        text = os.read(opened, 1024).decode("latin-1").strip()
    finally:
        os.close(opened)
    if not _FITTING.fullmatch(text):
        raise OptionError(
            f"the token file {shown!r} must hold one token of 32 to 512 letters and digits; got "
            f"{len(text)} characters. Name a file that does not exist, and nethook creates it."
        )
    return text


def _written(path: Path, opened: int) -> str:
    """A new token in a new file; no file stays where that fails, for it would hold no token."""
    token = new_token()
    try:
        with os.fdopen(opened, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
    except OSError as error:
        path.unlink(missing_ok=True)
        raise OptionError(f"the token file {str(path)!r} cannot be written: {error}.") from None
    return token


def _check_owner(about: os.stat_result, shown: str) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise OptionError(f"the token file {shown!r} must be a regular file; it is something else.")
    if os.name != "posix":
        return
    if about.st_mode & 0o077:
        raise OptionError(
            f"the token file {shown!r} must be readable by its owner alone; its mode is "
            f"{stat.S_IMODE(about.st_mode):04o}. Type: chmod 600 {shown}"
        )
    if about.st_uid not in (os.geteuid(), 0):
        raise OptionError(f"the token file {shown!r} must be yours; it is another user's.")


def link_with(address: str, token: str) -> str:
    """The link that carries a token."""
    return f"{address}?token={quote(token, safe='')}" if token else address


def cookie_name(host: str) -> str:
    """The cookie for a `Host` header.

    Browsers send a cookie to every port of a host, so pages at several ports need several names.
    The port is the one that the browser sees, which differs from ours at the end of a tunnel.
    """
    port = host.rpartition(":")[2]
    return f"nethook-token-{port if port.isdecimal() else 80}"


class TokenCheck:
    """Lets those in who have the token.

    Arguments:
        token: the token; "" lets everybody in.
        base: the path that the page is under, without a slash at its end.
    """

    def __init__(self, token: str, base: str = "") -> None:
        self._token = token
        self._base = base

    def answer(self, asked: Asked) -> Answer | None:
        """None for whoever may go on; for others what they are answered."""
        if not self._token:
            return None
        is_known = self._is_known(asked)
        reads = asked.method in ("GET", "HEAD")
        in_link = [value for name, value in _fields(asked.query) if name == "token"]
        if reads and in_link and (is_known or self._is_one_of(in_link)):
            return self._go_on(asked)
        if is_known:
            return None
        if asked.method == "POST" and _kind(asked) == "application/x-www-form-urlencoded":
            form = asked.body(LONGEST_FORM).decode("latin-1")
            if self._is_one_of(_pasted(form)):
                return self._go_on(asked)
            return _refusal(asked, _WRONG)
        return _refusal(asked, _WRONG if in_link else "")

    def _is_known(self, asked: Asked) -> bool:
        scheme, _, given = asked.headers.get("authorization", "").strip().partition(" ")
        if scheme.lower() == "bearer" and self._is_one_of([given.strip()]):
            return True
        wanted = cookie_name(asked.headers.get("host", ""))
        pairs = (pair.strip().partition("=") for pair in asked.headers.get("cookie", "").split(";"))
        return self._is_one_of([value for name, _, value in pairs if name == wanted])

    def _is_one_of(self, given: list[str]) -> bool:
        token = self._token.encode()
        # All are compared, each to its end: how long that takes says nothing of the token.
        same = [hmac.compare_digest(text.encode("utf-8", "replace"), token) for text in given]
        return any(same)

    def _go_on(self, asked: Asked) -> Answer:
        """A cookie, and the same address without the token."""
        parts = asked.query.split("&")
        rest = "&".join(pair for pair in parts if unquote_plus(pair.split("=")[0]) != "token")
        # One slash: with two of them what follows would be another host.
        path = f"{self._base}/" + quote(asked.path.lstrip("/"), safe="/~@:")
        to = f"{path}?{quote(rest, safe=_AS_IT_IS)}" if rest else path
        name = cookie_name(asked.headers.get("host", ""))
        headers = {
            "Set-Cookie": f"{name}={self._token}; Path={self._base}/; HttpOnly; SameSite=Strict",
            "Cache-Control": "no-store",
        }
        if asked.headers.get("sec-fetch-site") == "cross-site":
            # From a link on another site browsers do not send the new cookie along a redirect. They
            # do from a page of ours.
            return Answer(200, forwarding_page(to), {**headers, **PAGE_HEADERS})
        return Answer(303 if asked.method == "POST" else 302, "", {**headers, "Location": to})


def _fields(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError:  # more fields than anybody has a use for
        return []


def _kind(asked: Asked) -> str:
    return asked.headers.get("content-type", "").partition(";")[0].strip().lower()


def _pasted(form: str) -> list[str]:
    """What may be the token in a field into which somebody pasted the token, or the whole link."""

    def found() -> Iterator[str]:
        for name, value in _fields(form):
            if name == "token":
                yield value.strip()
                try:
                    query = urlsplit(value.strip()).query
                except ValueError:
                    continue
                yield from (given for key, given in _fields(query) if key == "token")

    return list(found())


def _refusal(asked: Asked, what: str) -> Answer:
    headers = {"WWW-Authenticate": 'Bearer realm="nethook"', "Cache-Control": "no-store"}
    if "text/html" not in asked.headers.get("accept", ""):
        text = f"{what} A token is needed: use the link that nethook printed.\n".lstrip()
        return Answer(401, text, {**headers, "Content-Type": "text/plain; charset=utf-8"})
    return Answer(401, token_page(what), {**headers, **PAGE_HEADERS})
