"""What a browser looks at: an address as plain data, and addresses made of it.

    /                                       all runs
    /run/ID[/VIEW]?name=value               a view of a run
    /compare?runs=ID,ID

Everything in an address comes from outside: it is taken apart here, and what is odd is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

from nethook.drawing.quantities import QUANTITIES

VIEWS: Final = {
    "": "Overview",
    "layer": "Layers",
    "depth": "Depth",
    "findings": "Findings",
    "model": "Model",
    "health": "Overhead",
    "studies": "Studies",
}
"""Views of a run, and what they are called; a run without studies has no view of them."""
PHASES: Final = ("train", "eval", "aux")
MOST_COMPARED: Final = 6
_LONGEST: Final = 8000


@dataclass(frozen=True)
class Place:
    """Where a browser is. `kind` is `list`, `run`, `compare` or `nowhere`."""

    kind: str
    run: str = ""
    view: str = ""
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def skeleton(self) -> str:
        """Places with the same skeleton differ in what stands in its parts alone."""
        return f"{self.kind}/{self.run}/{self.view}"

    def text(self, name: str) -> str:
        """A parameter, or ""."""
        return self.query.get(name, "")

    def number(self, name: str) -> int | None:
        """A parameter that is a whole number, or None."""
        text = self.query.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 16 else None

    def flag(self, name: str) -> bool:
        """A parameter that is on."""
        return self.query.get(name) == "1"

    def quantity(self, otherwise: str) -> str:
        """The quantity that is asked for."""
        asked = self.query.get("q", "")
        return asked if asked in QUANTITIES else otherwise

    def phase(self) -> str:
        """The phase that is asked for."""
        asked = self.query.get("phase", "")
        return asked if asked in PHASES else PHASES[0]

    def site(self) -> str | None:
        """The address of the layer that is asked for, or None."""
        asked = self.query.get("at", "")
        return None if not asked else asked.removeprefix(".") if asked == "." else asked

    def names(self, name: str) -> list[str] | None:
        """A parameter that is a list; None where it is not there at all."""
        if name not in self.query:
            return None
        return [word for word in self.query[name].split("~") if word]


def read_place(pathname: object, search: object) -> Place:
    """The place of an address."""
    path = str(pathname or "/")[:_LONGEST].strip("/").split("/")
    query = str(search or "")[:_LONGEST].removeprefix("?")
    try:
        given = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=20))
    except ValueError:
        given = {}
    if path == [""]:
        return Place("list", query=given)
    if path == ["compare"]:
        return Place("compare", query=given)
    if path[0] == "run" and len(path) in (2, 3):
        view = path[2] if len(path) == 3 else ""
        if view in VIEWS:
            return Place("run", path[1], view, given)
    return Place("nowhere")


def run_link(run: str, view: str = "", **query: object) -> str:
    """The address of a view of a run; empty parameters are left out."""
    return link("/".join(word for word in ("/run", quote(run, safe=""), view) if word), **query)


def site_link(run: str, address: str, **query: object) -> str:
    """The address of a layer's view; the model itself is a dot."""
    return run_link(run, "layer", at=address or ".", **query)


def link(path: str, **query: object) -> str:
    """An address with parameters."""
    shown = {name: str(value) for name, value in query.items() if value is not None and value != ""}
    return f"{path}?{urlencode(shown)}" if shown else path
