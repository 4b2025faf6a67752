"""The gate in front of the application."""

from __future__ import annotations

import asyncio
import threading

import pytest

from nethook.page.live.guard import Guard


async def nothing(*_: object) -> None:
    pass


def test_only_http_is_answered() -> None:
    guard = Guard(nothing, bound="127.0.0.1", token="", policy="", ending=threading.Event())
    with pytest.raises(RuntimeError, match="got 'websocket'"):
        asyncio.run(guard({"type": "websocket"}, nothing, nothing))  # type: ignore[arg-type]
