"""Sections of a run in a cell of a notebook: the same as on the page and in a report.

Nothing runs in a cell. So figures are pictures, what could be chosen is shown one after the other,
and names lead nowhere. The style holds inside the cell alone; where a viewer leaves styles out,
headings, texts, tables and pictures are still there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from markupsafe import Markup

from nethook.drawing.palette import THEMES
from nethook.drawing.rendering.render import picture
from nethook.drawing.stills.image import image
from nethook.errors import NoSuchSiteError, OptionError
from nethook.figures.reading import Reading
from nethook.figures.runs import AnyRun
from nethook.page.markup import asset, section_html
from nethook.page.section import Section, Subject
from nethook.page.sections.cost import cost
from nethook.page.sections.depth import all_depths
from nethook.page.sections.findings import findings
from nethook.page.sections.layer import folded_layer
from nethook.page.sections.layers import all_layers
from nethook.page.sections.loop import loop
from nethook.page.sections.model import model
from nethook.page.sections.pictures import all_pictures
from nethook.page.sections.ran import ran
from nethook.page.sections.verdict import MOST, verdict
from nethook.page.urls import Place

USUAL: Final = ("verdict", "loop")
"""What is shown where nothing is named."""
_WIDE, _NARROW = 1000, 620  # pixels of a figure; of one that stands beside a finding
_COLUMNS: Final = 256  # of a heatmap
_MODULES: Final = 400

SECTIONS: Final[Mapping[str, Callable[[Subject], list[Section]]]] = {
    "verdict": lambda subject: [verdict(subject, MOST)],
    "findings": lambda subject: [findings(subject)],
    "loop": lambda subject: [loop(subject, Place("run"))],
    "layers": lambda subject: [all_layers(subject, _COLUMNS)],
    "depth": lambda subject: [all_depths(subject)],
    "model": lambda subject: [model(subject, _MODULES)],
    "pictures": all_pictures,
    "ran": lambda subject: [ran(subject)],
    "cost": lambda subject: [cost(subject)],
}
"""What can be named, and the sections that it is."""


class Cell:
    """Sections of a run that show themselves in a notebook.

    Arguments:
        run: a run, or its path.
        names: of sections; none are the verdict and the curves.
        at: a layer, whose section comes last.
        theme: `light` or `dark`.
    """

    def __init__(self, run: AnyRun, names: Sequence[str], at: str | None, theme: str) -> None:
        if unknown := [name for name in names if name not in SECTIONS]:
            raise OptionError(
                f"`sections` must be some of {', '.join(SECTIONS)}; got {unknown[0]!r}."
            )
        if theme not in THEMES:
            raise OptionError(f"`theme` must be one of {', '.join(THEMES)}; got {theme!r}.")
        self._reading = Reading(run)
        self._names = tuple(names) or (USUAL if at is None else ())
        self._at = at
        self._theme = theme
        if at is not None and at not in self._reading.layers():
            raise NoSuchSiteError(f"The run has no outputs of a layer {at!r}.")

    def _repr_html_(self) -> str:
        style = f"<style>{_style()}</style>"
        shown = "".join(map(self._section, self._sections()))
        return f'{style}<div class="nethook-cell" data-theme="{self._theme}">{shown}</div>'

    def __repr__(self) -> str:
        named = [*self._names, *([] if self._at is None else [f"layer {self._at!r}"])]
        return f"<Sections of {self._reading.run.path.name!r}: {', '.join(named)}>"

    def _sections(self) -> list[Section]:
        subject = Subject(self._reading, _Nowhere(), self._reading.run.path.stem)
        made = [section for name in self._names for section in SECTIONS[name](subject)]
        if self._at is not None:
            index = self._reading.layers().index(self._at)
            made.append(folded_layer(subject, index, self._at, _COLUMNS, is_open=True))
        return made

    def _section(self, section: Section) -> str:
        width = _NARROW if section.name == "findings" else _WIDE
        drawn = {}
        for name, drawing in section.figures.items():
            spec = drawing.make()
            if spec is not None:
                drawn[name] = Markup(image(picture(spec, self._theme, width)))
        return section_html(section, heading="h2", drawn=drawn)


class _Nowhere:
    """Links of a cell: to no other place."""

    def layer(self, address: str, **query: object) -> str:
        """To nowhere."""
        return ""

    def finding(self, anchor: str) -> str:
        """To nowhere."""
        return ""

    def view(self, name: str, **query: object) -> str:
        """To nowhere."""
        return ""


@cache
def _style() -> str:
    """The style of the page, inside a cell: what it says of the page itself holds for the cell."""
    looks = asset("looks.css").replace(":root", "&")
    looks = re.sub(r"^(\s*)body \{", r"\1& {", looks, flags=re.MULTILINE)
    return f".nethook-cell {{\n{looks}{asset('cell.css')}}}"
