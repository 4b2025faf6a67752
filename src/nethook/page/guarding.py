"""Who may ask: this machine, under a name of its own; from elsewhere, whoever has the token.

A web page of a stranger, open in the same browser, can send requests to a local port, and under a
name of its own that it lets point here it could read the answers. Such requests have a foreign
`Host`, and are refused.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from flask import Flask

COOKIE: Final = "nethook-token"
LARGEST: Final = 1 << 20
"""Bytes of a request."""

_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def is_local(host: str) -> bool:
    """Whether an address is this machine's own, which no other machine reaches."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def new_token() -> str:
    """A word that nobody guesses."""
    return secrets.token_urlsafe(24)


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


def is_allowed(header: str, bound: str) -> bool:
    """Whether a `Host` header names this server, which is bound to an address.

    Names that another could let point here are not: addresses cannot be made to, and this machine's
    own name is known.
    """
    name = host_of(header)
    if name in _LOCAL:
        return True
    if is_local(bound):
        return False
    if name == bound.lower():
        return True
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return bool(name) and name in {socket.gethostname().lower(), socket.getfqdn().lower()}


def guard(server: Flask, *, bound: str, token: str, policy: str) -> None:
    """Refuse who may not ask, and tell browsers what the page may do.

    Arguments:
        server: the Flask application.
        bound: the address that it is bound to.
        token: what a browser must have been given; "" for none.
        policy: the content security policy.
    """
    from flask import Response, redirect, request

    server.config["MAX_CONTENT_LENGTH"] = LARGEST

    @server.before_request
    def refuse() -> Any:
        if not is_allowed(request.headers.get("Host", ""), bound):
            return Response("This name is not nethook's: use the address it printed.\n", 403)
        if request.headers.get("Sec-Fetch-Site") == "cross-site" and request.method != "GET":
            return Response("Another site's page may not ask.\n", 403)
        if request.method not in ("GET", "HEAD", "POST"):
            return Response("Runs are read only.\n", 405)
        if token:
            given = request.args.get("token", "")
            if request.method == "GET" and _equal(given, token):
                # The token leaves the address at once: it must not end in a history or a picture.
                answer = redirect(request.path)
                answer.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
                return answer
            if not _equal(request.cookies.get(COOKIE, ""), token):
                return Response("A token is needed: use the address that nethook printed.\n", 401)
        return None

    @server.after_request
    def tell(response: Any) -> Any:
        for name, value in _HEADERS.items():
            response.headers[name] = value
        response.headers["Content-Security-Policy"] = policy
        return response


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())
