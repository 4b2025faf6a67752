"""From a section to HTML: one Jinja environment for the page and the report.

Whatever a template puts in is escaped, and its control characters are spelt out, unless this file
made it. So a name from a stranger's run is text wherever it stands.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from nethook.drawing.data import Spec
from nethook.drawing.palette import THEMES, template
from nethook.drawing.rendering.render import dark_colours
from nethook.page.section import Section
from nethook.text.escape import html_prose, line, plotly_text, script_json, shorten
from nethook.text.findings import when
from nethook.text.numbers import number
from nethook.text.paragraphs import capitalized

EXPLAINED: Final = {
    "steps": "Steps of the optimizer that were recorded.",
    "loss": "The training loss, from its first to its last value.",
    "evaluation loss": "The loss in evaluation passes, from its first to its last value.",
    "evaluation accuracy": "The share of right answers, in the first and the last evaluation.",
    "layers measured": "Watching keeps its budget: it measures layers in some of the steps.",
    "parameters": "Numbers in all parameters of the model.",
    "layers": "Modules without modules in them, whose outputs are recorded.",
    "cost of watching": "Nethook's own time: per step, as a share of the training's, and in all.",
    "of which": "Putting the watch on, the first steps in detail, all later steps, and the end.",
    "measured": "The share of the steps that the numbers are from; 100 % is exact.",
    "budget": "What watching may cost, as a share of the training's time.",
    "series": "Quantities of sites that are recorded, each over all steps.",
    "mean": "Mean of all elements in these steps.",
    "std": "Standard deviation of all elements in these steps.",
    "min": "The smallest finite element in these steps.",
    "max": "The largest finite element in these steps.",
    "zeros": "The share of elements that are exactly zero.",
    "NaN, ∞": "The share of elements that are NaN or infinite.",
    "returns": "The shape of what the layer returned last.",
    "measured calls": "How often the layer was called in steps that were measured.",
    "threshold": "The number that what was found was compared with.",
    "verdict": "What the diagnosis says of the run.",
    "difference": "The relative difference that is passed here for the first time.",
}
"""What a name in a table or a list means, in one sentence: shown when it is pointed at."""


def render(name: str, data: Mapping[str, Any]) -> str:
    """A template with this data."""
    return _environment().get_template(name).render(data)


def section_html(
    section: Section,
    *,
    heading: str = "h2",
    live: bool = False,
    drawn: Collection[str] | None = None,
) -> str:
    """A section as HTML.

    Arguments:
        section: which.
        heading: the element of its title.
        live: whether choices can be made.
        drawn: the figures there are; None where that is not known yet.
    """
    context = {"h": heading, "live": live, "drawn": drawn, "section": section.name}
    return render(section.template, {**section.data(), **context})


def compile_templates() -> None:
    """Compile every template, which is done once in a process: a fifth of a second."""
    for file in resources.files("nethook.page").joinpath("templates").iterdir():
        if file.name.endswith(".html"):
            _environment().get_template(file.name)


def looks() -> str:
    """The templates of both themes, as the JSON that `draw.js` reads."""
    settings = {"templates": {theme: template(theme) for theme in THEMES}, "dark": dark_colours()}
    return script_json(settings)


@cache
def asset(name: str) -> str:
    """A stylesheet or script of the page."""
    return resources.files("nethook.page").joinpath("assets", name).read_text(encoding="utf-8")


def prose(text: object) -> Markup:
    """A text of several lines, with `code` in it: escaped, with its lines and its code marked."""
    return Markup(html_prose(text).replace("\n", "<br>"))


def value(measured: object) -> str:
    """A piece of evidence as people read it."""
    if measured is None:
        return ""
    if isinstance(measured, bool) or not isinstance(measured, int | float):
        return shorten(measured, 80)
    return f"{measured:,}" if isinstance(measured, int) else number(measured, 4)


def empty_figure(text: str) -> Spec:
    """A figure that says why there is none."""
    said_here = {
        "text": plotly_text(shorten(text, 140)), "xref": "paper", "yref": "paper", "x": 0.5,
        "y": 0.5, "showarrow": False, "font": {"size": 13},
    }  # fmt: skip
    hidden = {"visible": False, "fixedrange": True}
    layout = {
        "annotations": [said_here], "xaxis": hidden, "yaxis": hidden, "height": 120,
        "margin": {"t": 10, "b": 10, "l": 10, "r": 10},
    }  # fmt: skip
    return {"data": [], "layout": layout}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_plain,
        auto_reload=False,
    )
    made.filters |= {
        "short": shorten, "prose": prose, "value": value, "when": when, "capitalized": capitalized,
    }  # fmt: skip
    made.globals["EXPLAINED"] = EXPLAINED
    return made


def _source(name: str) -> str:
    return resources.files("nethook.page").joinpath("templates", name).read_text(encoding="utf-8")


def _plain(value: object) -> object:
    """What a template puts in: control characters are spelt out, and None is nothing."""
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Markup) and not value.isprintable():
        return "\n".join(line(row) for row in value.split("\n"))
    return value


def escaped(text: object) -> str:
    """Text for HTML, as templates put it in."""
    return str(escape(_plain(str(text))))
