"""Checks what a browser asks before Dash sees it, and answers malformed requests with one line.

Dash trusts requests to come from its own scripts; any other one ends in a traceback.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from flask import Flask

WAY: Final = "/_dash-update-component"
OUTPUTS: Final = (("page", "children"), ("view", "data"))
INPUTS: Final = (("url", "pathname"), ("url", "search"), ("tick", "n_intervals"))
STATE: Final = (("have", "data"),)


def problem_of(body: bytes) -> str:
    """What is wrong with the body of a request, in one sentence; "" if nothing is."""
    try:
        asked = json.loads(body.decode("utf-8"))
        json.dumps(asked, ensure_ascii=False).encode("utf-8")  # refuses lone surrogates
    except (ValueError, RecursionError):
        return "The body must be JSON."
    if not isinstance(asked, dict):
        return "The body must be a JSON object."
    if asked.get("output") != _output(OUTPUTS):
        return "`output` must name a callback of the page."
    changed = asked.get("changedPropIds")
    fitting = (
        _names(asked.get("outputs")) == OUTPUTS
        and _names(asked.get("inputs")) == INPUTS
        and _names(asked.get("state")) == STATE
        and isinstance(changed, list)
        and all(isinstance(name, str) for name in changed)
    )
    if not fitting:
        return "The body does not match the callback."
    pathname, search, tick = (entry.get("value") for entry in asked["inputs"])
    if not all(value is None or isinstance(value, str) for value in (pathname, search)):
        return "`pathname` and `search` must be strings."
    if tick is not None and not isinstance(tick, int):
        return "`n_intervals` must be a whole number."
    if not _is_known(asked["state"][0].get("value")):
        return "`have` must be the skeleton and tags that the page sent."
    return ""


def _output(names: tuple[tuple[str, str], ...]) -> str:
    """How Dash calls a callback with these outputs."""
    return f"..{'...'.join('.'.join(name) for name in names)}.."


def _names(entries: Any) -> tuple[tuple[Any, Any], ...] | None:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return None
    return tuple((entry.get("id"), entry.get("property")) for entry in entries)


def _is_known(have: Any) -> bool:
    """Whether this is `{"skeleton": …, "tags": {part: tag}}`, a part of it, or nothing."""
    if have is None:
        return True
    if not isinstance(have, Mapping) or not isinstance(have.get("skeleton", ""), str):
        return False
    tags = have.get("tags", {})
    return isinstance(tags, Mapping) and all(isinstance(tag, str) for tag in tags.values())


def check_questions(server: Flask) -> None:
    """Answer malformed requests, and errors of our own, with one line."""
    from dash.exceptions import DependencyException
    from flask import Response, request
    from werkzeug.exceptions import HTTPException

    def line(status: int, text: str) -> Response:
        return Response(f"{text}\n", status, mimetype="text/plain")

    @server.before_request
    def check() -> Response | None:
        if request.method != "POST":
            return None
        if request.path != WAY:
            return line(404, "Nothing can be posted here.")
        if request.mimetype != "application/json":
            return line(400, "The body must be application/json.")
        problem = problem_of(request.get_data())
        return line(400, problem) if problem else None

    @server.errorhandler(HTTPException)
    def refused(error: HTTPException) -> Any:
        status = error.code or 500
        return line(status, f"{error.name}.") if status >= 400 else error  # a redirect

    @server.errorhandler(DependencyException)
    def missing(_: Exception) -> Response:
        return line(404, "There is no such file.")

    @server.errorhandler(Exception)
    def failed(error: Exception) -> Response:
        server.logger.error("the page failed", exc_info=error)
        return line(500, f"nethook failed to answer: {type(error).__name__}.")
