"""A section: what is shown of one thing, written once for the live page and for the report.

A section is one file in `sections/` that gives plain data and figures, and one template of the same
name in `templates/`. The page asks for what has changed, by its tags; the report takes all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from nethook.drawing.data import Spec
from nethook.figures.reading import Reading

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Drawing:
    """A figure: made when its tag is another than before. It may turn out that there is none."""

    tag: str
    make: Callable[[], Spec | None] = field(repr=False)

    @staticmethod
    def ready(spec: Spec, tag: str = "") -> Drawing:
        """A figure that is made already."""
        return Drawing(tag, lambda: spec)


@dataclass(frozen=True)
class Section:
    """Data for a template, and figures by the names that the template has for them."""

    name: str
    tag: str
    data: Callable[[], Data] = field(repr=False)
    figures: Mapping[str, Drawing] = field(default_factory=dict, repr=False)

    @property
    def template(self) -> str:
        """The template: several sections of a page may share one (`layer-3`)."""
        return f"{self.name.partition('-')[0]}.html"


class Links(Protocol):
    """Where a name leads: to another view of the page, or to a place in the report; "" nowhere."""

    def layer(self, address: str, **query: object) -> str:
        """To a layer, or to the layer whose parameter this is."""

    def finding(self, anchor: str) -> str:
        """To a finding, by its anchor."""

    def view(self, name: str, **query: object) -> str:
        """To a view of the page; "" in a report."""


@dataclass(frozen=True)
class Subject:
    """What sections are about: a run as it was read, what to call it, and where names lead.

    `live` says that choices can be made: the page answers them, and a report has no server.
    """

    reading: Reading
    links: Links
    name: str
    tag: str = ""
    live: bool = False
