"""From a place to what is shown there."""

from __future__ import annotations

from dataclasses import replace

from dash import html

from nethook.page.folder import Folder, Opened
from nethook.page.html import Node, Part, Shown, anchor
from nethook.page.live.frame import around, problem_card, state_part
from nethook.page.live.run_list import listing
from nethook.page.sections.compare import Comparison, compare
from nethook.page.sections.depth import depth
from nethook.page.sections.findings import findings
from nethook.page.sections.health import health
from nethook.page.sections.layer import layer
from nethook.page.sections.model import model
from nethook.page.sections.overview import offered_quantities, overview
from nethook.page.summaries import Summaries
from nethook.page.urls import Place
from nethook.text.escape import shorten


class Views:
    """All views of a folder, and what they keep between two looks."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._summaries = Summaries()
        self._comparison = Comparison()

    def show(self, where: Place) -> Shown:
        """The view at a place."""
        if self.folder.single and where.kind in ("list", "run"):
            entries = self.folder.entries()
            if not entries:
                return self._waiting(where)
            if where.kind == "list":
                where = replace(where, kind="run", run=entries[0].id)
        if where.kind == "list":
            return listing(self.folder, self._summaries, where)
        if where.kind == "compare":
            shown = compare(self.folder, self._comparison, where)
            return self._framed(where, "compare", shown, Part("", lambda: None))
        entry = self.folder.entry(where.run) if where.kind == "run" else None
        if entry is None:
            return self._nowhere(where)
        opened = self.folder.open(entry)
        try:
            shown, state = self._run(opened, where), state_part(opened)
        except Exception as error:  # a file of a stranger may be wrong in unheard-of ways
            opened = replace(opened, state="broken", problem=f"{type(error).__name__}: {error}")
            shown, state = self._broken(opened), state_part(replace(opened, reading=None))
        return self._framed(where, entry.name, replace(shown, of=opened), state)

    def read_rest(self, where: Place) -> None:
        """Read what the first screen of a run can show, if nothing is written to it any more."""
        entry = self.folder.entry(where.run)
        opened = self.folder.open(entry) if entry is not None else None
        if opened is None or opened.reading is None or opened.state == "open":
            return
        for name in offered_quantities(opened.reading):
            with opened.lock:
                opened.reading.grid(name)

    def _broken(self, opened: Opened) -> Shown:
        title = f"{shorten(opened.entry.name, 60)} – nethook"
        body = [html.H1(shorten(opened.entry.name, 80)), problem_card(opened)]
        return Shown(title, body, {}, f"broken {opened.problem}")

    def _run(self, opened: Opened, where: Place) -> Shown:
        reading = opened.reading
        if reading is None:
            return self._broken(opened)
        if where.view == "depth":
            return depth(self.folder, opened, reading, where)
        view = {
            "": overview,
            "layer": layer,
            "findings": findings,
            "model": model,
            "health": health,
        }[where.view]
        return view(opened, reading, where)

    def _framed(self, where: Place, title: str, shown: Shown, state: Part) -> Shown:
        inside: list[Node] = shown.body if isinstance(shown.body, list) else [shown.body]
        body = around(where, title, *inside)
        return replace(shown, body=body, parts={"state": state, **shown.parts})

    def _nowhere(self, where: Place) -> Shown:
        said = [
            html.Div("There is nothing here", className="word"),
            html.P(["The run may have been moved. ", anchor("All runs", "/")]),
        ]
        shown = Shown("nethook", [html.Div(said, className="card verdict")], {}, "nowhere")
        return self._framed(where, "", shown, Part("", lambda: None))

    def _waiting(self, where: Place) -> Shown:
        said = [
            html.Div("Waiting for the first step", className="word"),
            html.P("The run appears here as soon as something of it is written."),
        ]
        shown = Shown("nethook", [html.Div(said, className="card verdict")], {}, "waiting")
        return self._framed(where, self.folder.title, shown, Part("", lambda: None))
