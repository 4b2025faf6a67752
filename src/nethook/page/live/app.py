"""The Dash application: one question a look, answered with what has changed.

The browser says where it is and which parts it has (by their tags); the answer is the skeleton of
the view, where it is another, and the parts whose tags differ. The same question is asked again
every two seconds, and mostly answered with nothing: that is how a run is followed live.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
import warnings
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from nethook.drawing.plotly_js import without_unused
from nethook.drawing.render import payload
from nethook.page.folder import Folder
from nethook.page.html import Part, attributes, empty_figure, fill, note
from nethook.page.live.access import guard
from nethook.page.live.requests import INPUTS, OUTPUTS, STATE, check_questions
from nethook.page.live.routes import Views
from nethook.page.report.html import asset, looks
from nethook.page.urls import Place, read_place

EVERY: Final = 2.0
"""Seconds between two looks at a run that is being written."""

_REST: Final = 1.0  # seconds after which the first view of a run is drawn
_OWN: Final = ("page.css", "page.js")
_SHARED: Final = ("report.css", "draw.js")
_INDEX: Final = """<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{%title%}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/looks/report.css?SEAL">
<link rel="stylesheet" href="/looks/page.css?SEAL">
<script type="application/json" id="nh-looks">LOOKS</script>
<script src="/looks/draw.js?SEAL"></script>
<script src="/looks/page.js?SEAL"></script>
<script async id="plotly-js" src="/looks/plotly.js?SEAL" data-whole="WHOLE"></script>
{%css%}
</head>
<body>
{%app_entry%}
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>"""


# What the page has no use for: each would be loaded before the first figure is drawn.
_LEFT_OUT: Final = re.compile(
    r'<script src="[^"]*(?:dash_table|/async-|/polyfill@|/plotly/package_data/)[^"]*"></script>\s*'
)
_WHOLE: Final = re.compile(r'<script src="([^"]*/plotly/package_data/[^"]*)"></script>')


class _App(Dash):
    """Dash, with fewer scripts.

    plotly.js takes longest to load. It is asked for before those of Dash, waits for none of them
    and holds up none: meanwhile the first question is asked and answered. page.js, which is there
    before it, hears when it is.
    """

    def interpolate_index(self, **parts: Any) -> str:  # type: ignore[override]  # as Dash advises
        whole = _WHOLE.search(parts["scripts"])
        parts["scripts"] = _LEFT_OUT.sub("", parts["scripts"])
        page = str(super().interpolate_index(**parts))  # type: ignore[no-untyped-call]
        return page.replace("WHOLE", whole[1] if whole else "")


def make_app(folder: Folder, *, bound: str = "127.0.0.1", token: str = "") -> Dash:
    """The application that serves a folder.

    Arguments:
        folder: the runs.
        bound: the address that the server is bound to.
        token: what a browser or script must show; "" for none.
    """
    files = _files()
    seal = hashlib.sha256(b"".join(files.values())).hexdigest()[:12]
    app = _App(
        "nethook.page",
        title="nethook",
        update_title="",  # the title stays as it is while something is asked
        assets_folder="no-such-folder",
        include_assets_files=False,
        serve_locally=True,
        eager_loading=True,
        compress=False,
        suppress_callback_exceptions=True,
        index_string=_INDEX.replace("SEAL", seal).replace("LOOKS", looks()),
        add_log_handler=False,
    )
    app.enable_dev_tools(debug=False)
    app.logger.setLevel(logging.ERROR)
    app.layout = _layout()
    views = Views(folder)
    _callbacks(app, views)
    guard(app.server, bound=bound, token=token, policy=_policy(app))
    check_questions(app.server)
    _read_ahead(app, views)

    def look(name: str) -> Any:
        from flask import Response

        if name not in files:
            return Response("There is no such file.\n", 404)
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        answer = Response(files[name], mimetype=kind)
        answer.headers["Cache-Control"] = "max-age=31536000, immutable"
        return answer

    app.server.get("/looks/<name>")(look)
    return app


def _read_ahead(app: Dash, views: Views) -> None:
    """Read a run while the browser loads the scripts: it asks when it has them."""
    from flask import request

    def ahead() -> None:
        place = read_place(request.path, request.query_string.decode("latin-1"))
        if request.method == "GET" and place.kind == "run" and not views.folder.is_open(place.run):
            threading.Thread(target=_prepare, args=(views, place), daemon=True).start()

    app.server.before_request(ahead)


def _prepare(views: Views, place: Place) -> None:
    """Make what is asked for first, and then read what can be chosen, if it stays as it is."""
    with suppress(Exception):  # who asks is told
        answer_of(views, place, {})
        time.sleep(_REST)
        views.read_rest(place)


def _files() -> dict[str, bytes]:
    """The stylesheets and scripts of the page."""
    own = resources.files("nethook.page").joinpath("assets")
    assets = {name: own.joinpath(name).read_bytes() for name in _OWN}
    assets |= {name: asset(name).encode() for name in _SHARED}
    return assets | {"plotly.js": _plotly_js()}


@lru_cache(maxsize=1)
def _plotly_js() -> bytes:
    """plotly.js as the page needs it, made once for all servers of a process."""
    from plotly.offline import get_plotlyjs

    return without_unused(get_plotlyjs()).encode()


def _policy(app: Dash) -> str:
    """What the page may do: run its own scripts, ask its own server, and nothing else."""
    inline = " ".join(app.csp_hashes())
    return (
        "default-src 'none'; connect-src 'self'; img-src 'self' data: blob:; font-src data:; "
        f"style-src 'self' 'unsafe-inline'; script-src 'self' {inline}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )


def _layout() -> Any:
    return html.Div(
        [
            dcc.Location(id="url", refresh="callback-nav"),
            dcc.Interval(id="tick", interval=int(1000 * EVERY)),
            dcc.Store(id="view"),
            dcc.Store(id="have", data={}),
            html.A("Skip to the content", href="#page", className="skip"),
            html.Div(id="page", children=html.P("Reading …", className="note loading")),
            html.Div(
                id="said", role="status", **attributes(aria_live="polite"), className="hidden"
            ),
        ]
    )


def _callbacks(app: Dash, views: Views) -> None:
    @app.callback(
        *(Output(*name) for name in OUTPUTS),
        *(Input(*name) for name in INPUTS),
        *(State(*name) for name in STATE),
        running=[(Output("tick", "disabled"), True, False)],
    )
    def answer(pathname: str, search: str, _: int, have: Any) -> tuple[Any, Any]:
        body, view = answer_of(views, read_place(pathname, search), have)
        if view["new"]:
            fill(body, view["parts"])
        return body, view

    beside: Any = app.clientside_callback  # without types
    beside(ClientsideFunction("nethook", "have"), Output("have", "data"), Input("view", "data"))


def answer_of(views: Views, place: Place, have: Any) -> tuple[Any, Any]:
    """What a browser at a place is sent: the skeleton or nothing, and the parts that are new.

    Arguments:
        views: what can be shown.
        place: where the browser is.
        have: what it has, as it says: `{"skeleton": …, "tags": {part: tag}}`.

    Raises:
        PreventUpdate: it has everything.
    """
    shown = views.show(place)
    kept = have if isinstance(have, Mapping) else {}
    skeleton = f"{place.skeleton} {shown.key}"
    same = kept.get("skeleton") == skeleton
    tags = kept.get("tags") if same else {}
    tags = tags if isinstance(tags, Mapping) else {}
    wanted = {name: part for name, part in shown.parts.items() if tags.get(name) != part.tag}
    if same and not wanted:
        raise PreventUpdate
    begin = time.monotonic()
    with shown.of.lock if shown.of is not None else nullcontext():
        sent = {name: {"tag": part.tag, **_made(part)} for name, part in wanted.items()}
    if shown.of is not None:
        shown.of.seconds = max(shown.of.seconds, time.monotonic() - begin)
    view = {
        "skeleton": skeleton, "title": shown.title, "new": not same, "step": shown.step,
        "parts": sent,
    }  # fmt: skip
    return (no_update if same else shown.body), view


def _made(part: Part) -> dict[str, Any]:
    """A part as it is sent; one that cannot be made says so."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numbers of a stranger may overflow
            made = part.make()
    except Exception as error:
        why = f"This cannot be shown: {type(error).__name__}: {error}"
        made = empty_figure(why) if part.figure else note(why[:500])
    if part.figure:
        return {"figure": payload(made) if made is not None else None}
    return {"nodes": made}
