"""Who may ask: browsers of this machine, under a name of its own, that have the token.

A web page of a stranger, open in the same browser, can send requests to a local port, and under a
name of its own that it lets point here it could read the answers. Such requests have a foreign
`Host`, and are refused before anything else is looked at.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from nethook.page.live.tokens import Answer, Asked, TokenCheck

_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})


def is_local(host: str) -> bool:
    """Whether an address is this machine's own, which no other machine reaches."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The name in a `Host` header, without its port; "" where it is none."""
    text = header.strip().lower()
    if text.startswith("["):  # [::1]:8050
        name, bracket, rest = text[1:].partition("]")
        return name if bracket and (not rest or rest[0] == ":") else ""
    name, colon, port = text.rpartition(":")
    if not colon:
        return text
    return name if port.isdigit() else ""


def is_allowed(header: str, bound: str, hosts: Collection[str] = ()) -> bool:
    """Whether a `Host` header names this server, which is bound to an address.

    `hosts` are further names of it, in lower case: of a proxy in front of it.

    Names that another could let point here are not: addresses cannot be made to, and this machine's
    own name is known.
    """
    name = host_of(header)
    if name in _LOCAL or (name and name in hosts):
        return True
    if is_local(bound):
        return False
    if name == bound.lower():
        return True
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return bool(name) and name in {socket.gethostname().lower(), socket.getfqdn().lower()}


class Gate:
    """Everything that is asked before a request reaches the page.

    Arguments:
        bound: the address that the server is bound to.
        token: what must be shown; "" for none.
        hosts: further names that browsers may know this server by.
        base: the path that it is under.
    """

    def __init__(self, bound: str, token: str, hosts: Collection[str] = (), base: str = "") -> None:
        self._bound = bound
        self._hosts = frozenset(host.lower() for host in hosts)
        self._check = TokenCheck(token, base)

    def answer(self, asked: Asked) -> Answer | None:
        """None for whoever may go on; for others what they are answered."""
        if not is_allowed(asked.headers.get("host", ""), self._bound, self._hosts):
            return Answer(
                403,
                "This host name is not nethook's. Use the address that nethook printed, or start "
                "it with --allow-host and the name of the proxy.\n",
            )
        if asked.method not in ("GET", "HEAD", "POST"):
            return Answer(405, "Runs are read only.\n", {"Allow": "GET, HEAD, POST"})
        if asked.method == "POST" and _is_foreign(asked):
            return Answer(403, "Requests from pages of other sites are refused.\n")
        return self._check.answer(asked)


def _is_foreign(asked: Asked) -> bool:
    """Whether a request comes from a page of another server; one at another port is another."""
    if site := asked.headers.get("sec-fetch-site"):
        return site not in ("none", "same-origin")
    # An older browser. Of a page without a referrer, as ours, the origin is "null".
    origin = asked.headers.get("origin", "null")
    if origin == "null":
        return False
    try:
        return urlsplit(origin).netloc.lower() != asked.headers.get("host", "").strip().lower()
    except ValueError:
        return True
