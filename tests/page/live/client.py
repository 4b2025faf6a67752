"""Asks the application without a network."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from nethook.page.folder import Folder
from nethook.page.live.app import make_app


@dataclass
class Answered:
    """An answer of the application."""

    status_code: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


class Client:
    """A browser or script; `app` is the application."""

    def __init__(self, folder: Folder, **options: Any) -> None:
        self.app = make_app(folder, **options)

    def get(self, path: str, **headers: str) -> Answered:
        return self.ask("GET", path, b"", headers)

    def post(self, path: str, body: bytes = b"", **headers: str) -> Answered:
        return self.ask("POST", path, body, headers)

    def view(self, address: str, have: object = None) -> Any:
        """What is shown at an address."""
        return self.get(f"/view?at={quote(address)}", Nethook_Have=json.dumps(have)).json()

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answered:
        """Headers have `_` in the place of `-`."""
        given = {"host": "127.0.0.1:8420"}
        given |= {name.replace("_", "-").lower(): value for name, value in headers.items()}
        raw, _, query = path.partition("?")
        scope = {
            "type": "http", "method": method, "path": unquote(raw), "raw_path": raw.encode(),
            "query_string": query.encode("utf-8", "surrogateescape"), "root_path": "",
            "scheme": "http", "server": ("127.0.0.1", 8420), "client": ("127.0.0.1", 1),
            "http_version": "1.1", "asgi": {"version": "3.0"},
            "headers": [(n.encode("latin-1"), v.encode("latin-1")) for n, v in given.items()],
        }  # fmt: skip
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))  # type: ignore[arg-type]
        (start,) = (message for message in sent if message["type"] == "http.response.start")
        found = {name.decode(): value.decode() for name, value in start["headers"]}
        content = b"".join(message.get("body", b"") for message in sent)
        return Answered(start["status"], found, content)
