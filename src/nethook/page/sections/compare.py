"""Two or more runs: their curves in one figure, and where each parts from the first."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html

from nethook.drawing.data import Spec
from nethook.drawing.quantities import QUANTITIES
from nethook.figures.difference import Difference, loss_of
from nethook.figures.reading import Reading
from nethook.figures.runs import parting_marks, parting_spec
from nethook.figures.two_runs import curves_of, ratio_of_two
from nethook.page.folder import Folder, Opened
from nethook.page.html import (
    Node,
    Part,
    Shown,
    address,
    anchor,
    attributes,
    empty_figure,
    facts,
    figure,
    place,
    said,
    select,
    table,
)
from nethook.page.sections.overview import layer_link, offered_quantities
from nethook.page.urls import MOST_COMPARED, Place, run_link
from nethook.text.escape import shorten
from nethook.text.numbers import number

_POINTS = 400


class Comparison:
    """Runs beside each other. What parts them is found once for each pair."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Difference] = {}

    def difference(self, one: Opened, two: Opened) -> Difference:
        """What is different between two runs as they are now."""
        key = (one.tag, two.tag)
        if key not in self._found:
            assert one.reading is not None and two.reading is not None  # noqa: PT018 - both were read
            if len(self._found) > 8:
                self._found.clear()
            self._found[key] = Difference(one.reading.run, two.reading.run)
        return self._found[key]


def compare(folder: Folder, comparison: Comparison, where: Place) -> Shown:
    """The view of two or more runs."""
    asked = [run for run in where.text("runs").split("~") if run][:MOST_COMPARED]
    entries = [entry for run in dict.fromkeys(asked) if (entry := folder.entry(run))]
    opened = [folder.open(entry) for entry in entries]
    whole = [run for run in opened if run.reading is not None]
    tag = repr([run.tag for run in opened])
    body: list[Node] = [html.H1("Compare"), place("choose")]
    parts = {"choose": Part(tag, lambda: _choose(folder, opened))}
    if len(whole) < 2:
        text = "Choose two runs or more that can be read, in the list of runs."
        body.append(html.Div(html.P(["", anchor(text, "/")]), className="card"))
        return Shown("Compare – nethook", body, parts, "few")
    one = whole[0]
    index = min(max(1, where.number("b") or 1), len(whole) - 1)
    other = whole[index]
    offered = ["", *offered_quantities(_reading(one))]
    chosen = where.text("q") if where.text("q") in offered else ""
    names = _names(whole)
    picked = repr((tag, index, chosen))
    body += [
        place("verdict"),
        html.Div(figure("curves", "Loss and gradient norm of all runs", 420), className="card"),
        html.Div(
            [
                html.Div([html.H2("Where they diverge"), place("pick", className="tools tight")],
                         className="row"),
                place("points"),
                figure("parting", "How far every layer is from the other run's", 300),
            ],
            className="card",
        ),
        html.Div([html.H2("What ran differently"), place("facts")], className="card"),
    ]  # fmt: skip

    def pick() -> Node:
        others = [(str(number_of), names[number_of]) for number_of in range(1, len(whole))]
        titles = [(name, QUANTITIES[name].title if name else "difference") for name in offered]
        return [
            select("b", others, str(index), f"{shorten(names[0], 24)} against"),
            select("q", titles, chosen, "Show"),
        ]

    parts |= {
        "verdict": Part(tag, lambda: _verdict(comparison, whole, names)),
        "curves": Part(tag, lambda: _curves(comparison, whole, names), figure=True),
        "pick": Part(picked, pick),
        "points": Part(picked, lambda: _points(comparison.difference(one, other), one)),
        "parting": Part(
            picked,
            lambda: _parting(comparison.difference(one, other), one, chosen),
            figure=True,
        ),
        "facts": Part(picked, lambda: _facts(comparison.difference(one, other))),
    }
    return Shown("Compare – nethook", body, parts, f"{len(whole)}")


def _reading(opened: Opened) -> Reading:
    assert opened.reading is not None  # only those that were read come here
    return opened.reading


def _names(runs: Sequence[Opened]) -> list[str]:
    """What to call the runs: their names, numbered where two have the same."""
    given = [shorten(run.entry.name, 40) for run in runs]
    return [
        name if given.count(name) == 1 else f"{name} ({number})"
        for number, name in enumerate(given, start=1)
    ]


def _choose(folder: Folder, opened: Sequence[Opened]) -> Node:
    """The runs that are compared, each with a way to leave it out, and a way to add one."""
    ids = [run.entry.id for run in opened]
    chips = []
    for run in opened:
        rest = "~".join(other for other in ids if other != run.entry.id)
        name = shorten(run.entry.name, 40)
        bad = " (cannot be read)" if run.reading is None else ""
        chips.append(
            html.Span(
                [
                    anchor(f"{name}{bad}", run_link(run.entry.id)),
                    html.Button(
                        "×", type="button", className="param small",
                        **attributes(
                            data_param="runs", data_value=rest,
                            aria_label=f"Leave {name} out",
                        ),
                    ),
                ],
                className="chip",
            )
        )  # fmt: skip
    more = [(entry.id, entry.name) for entry in folder.entries() if entry.id not in ids][:200]
    add: list[Node] = []
    if more and len(ids) < MOST_COMPARED:
        options = [("", "choose …"), *[("~".join([*ids, run]), name) for run, name in more]]
        add = [select("runs", options, "", "Add a run")]
    return html.Div([*chips, *add], className="tools")


def _verdict(comparison: Comparison, runs: Sequence[Opened], names: Sequence[str]) -> Node:
    """For each run, in one sentence, where it parts from the first."""
    rows = []
    for other, name in zip(runs[1:], names[1:], strict=True):
        difference = comparison.difference(runs[0], other)
        rows.append((f"{names[0]} and {name}", said(difference.headline(), 300)))
    losses = []
    for run, name in zip(runs, names, strict=True):
        if loss := loss_of(_reading(run)):
            losses.append((name, loss))
    return html.Section(
        [
            html.Ol([html.Li([html.B(f"{pair}: "), text]) for pair, text in rows]),
            facts(losses),
        ],
        className="card verdict info",
        **attributes(aria_label="Where they diverge"),
    )


def _curves(comparison: Comparison, runs: Sequence[Opened], names: Sequence[str]) -> Spec:
    marks = []
    for other in runs[1:]:
        marks += parting_marks(comparison.difference(runs[0], other).parting)[:1]
    readings = [_reading(run) for run in runs]
    spec = curves_of(readings, names, marks, titled=False, points=_POINTS)
    return spec if spec["data"] else empty_figure("Neither has a loss or gradients yet.")


def _points(difference: Difference, one: Opened) -> Node:
    rows = [
        [
            point.words,
            f"{point.step:,}",
            address(point.address, layer_link(one, _reading(one), point.address, step=point.step)),
            f"{said(point.quantity, 30)}, {said(point.column, 20)}",
            number(point.first, 5),
            number(point.second, 5),
        ]
        for point in difference.places()
    ]
    if not rows:
        return html.P(said(difference.headline(), 300), className="note")
    first, second = (shorten(name, 24) for name in difference.names)
    return table(("difference", "step", "where", "what", first, second), rows, right=(1, 4, 5))


def _parting(difference: Difference, one: Opened, chosen: str) -> Spec:
    marks = parting_marks(difference.parting)
    if chosen:
        spec = ratio_of_two(difference.first, difference.second, chosen, difference.names, marks)
        if spec is None:
            return empty_figure("They have no such numbers of the same layers at the same steps.")
    else:
        try:
            spec = parting_spec(difference.first, difference.second, difference.parting)
        except LookupError as error:
            return empty_figure(str(error))
    rows = difference.first.order.sorted(difference.parting.rows)
    if not chosen:
        links = [{"to": layer_link(one, _reading(one), row)} for row in rows]
        spec["layout"]["meta"] = {"links": links}
    return spec


def _facts(difference: Difference) -> Node:
    rows = [[said(what, 40), said(a, 200), said(b, 200)] for what, a, b in difference.parting.facts]
    for name, sites in zip(
        difference.names,
        (difference.parting.only_first, difference.parting.only_second),
        strict=True,
    ):
        if sites:
            shown = ", ".join(shorten(site, 40) for site in sites[:8])
            rows.append([f"only in {shorten(name, 30)}", shown, ""])
    if not rows:
        return html.P("Nothing that is recorded of what ran.", className="note")
    return table(("", *(shorten(name, 30) for name in difference.names)), rows)
