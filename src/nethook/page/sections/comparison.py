"""Two or more runs: what differs in how they ran, their curves, and where they diverge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nethook.drawing.data import Spec
from nethook.drawing.quantities import QUANTITIES
from nethook.figures.difference import Difference, loss_of, place_of, what_of
from nethook.figures.reading import Reading
from nethook.figures.runs import parting_marks, parting_spec
from nethook.figures.two_runs import curves_of, ratio_of_two
from nethook.page.markup import empty_figure
from nethook.page.section import Drawing, Section, Subject
from nethook.page.sections.layers import Pane, offered_quantities
from nethook.page.urls import Place
from nethook.text.escape import shorten
from nethook.text.numbers import number

_POINTS = 400
_RATIOS = ("spread", "output_gradients", "gradients", "updates", "weights", "silent")
_EXPLAIN = "Largest relative difference of mean and spread of all that is recorded of a site."


class Pair(NamedTuple):
    """Two of the runs that are compared, and how they differ."""

    first: Subject
    second: Subject
    names: tuple[str, str]
    difference: Difference


class Choice(NamedTuple):
    """What can be chosen of a comparison, on the page."""

    runs: Sequence[tuple[str, str, str]] = ()  # name, where it leads, the address without it
    others: Sequence[tuple[str, str]] = ()  # that can be added
    against: int = 1  # which of them the first is held against


def comparison(pairs: Sequence[Pair], where: Place, choice: Choice) -> Section:
    """The section of runs that are compared with the first, each a pair."""
    subjects = [pairs[0].first, *(pair.second for pair in pairs)]
    names = [pairs[0].names[0], *(pair.names[1] for pair in pairs)]
    index = min(max(1, choice.against), len(pairs))
    pair = pairs[index - 1]
    offered = ["", *offered_quantities(pair.first.reading)]
    chosen = where.text("q") if where.text("q") in offered else ""
    tag = repr([subject.tag for subject in subjects])
    picked = repr((tag, index, chosen))
    figures = {
        "runs": Drawing(tag, lambda: _curves(pairs, subjects, names)),
        "parting": Drawing(picked, lambda: _parting(pair, chosen)),
    }

    def data() -> dict[str, Any]:
        titles = [(name, QUANTITIES[name].title if name else "difference") for name in offered]
        pane = Pane(titles[offered.index(chosen)][1], _EXPLAIN, "parting", 300)
        return {
            **_data(pairs, pair, subjects, names),
            "choice": choice,
            "against": [(str(at), names[at]) for at in range(1, len(names))],
            "index": str(index),
            "titles": titles,
            "chosen": chosen,
            "panes": [pane],
        }

    return Section("comparison", repr((picked, choice.runs, len(choice.others))), data, figures)


def whole_comparison(pair: Pair) -> Section:
    """The section of two runs with every quantity: for a file."""
    figures = {"runs": Drawing("", lambda: _curves([pair], [pair.first, pair.second], pair.names))}
    panes = []
    parting = pair.difference.parting
    if parting.rows and np.isfinite(parting.difference).any():
        figures["parting"] = Drawing("", lambda: _parting(pair, ""))
        panes.append(Pane("Where they differ", _EXPLAIN, "parting", 300))
    for name in _RATIOS:
        spec = _ratio(pair, name)
        if spec is not None:
            quantity = QUANTITIES[name]
            explain = f"{quantity.explain} {pair.names[1]} against {pair.names[0]}."
            figures[f"ratio-{name}"] = Drawing.ready(spec)
            panes.append(Pane(quantity.title, explain, f"ratio-{name}", 300))

    def data() -> dict[str, Any]:
        return {
            **_data([pair], pair, [pair.first, pair.second], pair.names),
            "choice": Choice(), "against": [], "index": "", "titles": [], "chosen": "",
            "panes": panes,
        }  # fmt: skip

    return Section("comparison", "", data, figures)


def _data(
    pairs: Sequence[Pair], pair: Pair, subjects: Sequence[Subject], names: Sequence[str]
) -> dict[str, Any]:
    losses = [
        (name, loss_of(subject.reading)) for name, subject in zip(names, subjects, strict=True)
    ]
    return {
        "headlines": [
            (f"{each.names[0]} and {each.names[1]}", each.difference.headline()) for each in pairs
        ],
        "losses": [(name, text) for name, text in losses if text],
        "same": all(each.difference.parting.same for each in pairs),
        "facts": _facts(pair),
        "names": pair.names,
        "points": _points(pair),
        "headline": pair.difference.headline(),
    }


def _facts(pair: Pair) -> list[tuple[str, str, str]]:
    """What differs in how they ran: configuration and code first."""
    rows = list(pair.difference.parting.facts)
    only = (pair.difference.parting.only_first, pair.difference.parting.only_second)
    for name, sites in zip(pair.names, only, strict=True):
        if sites:
            shown = ", ".join(shorten(site, 40) for site in sites[:8])
            more = f" and {len(sites) - 8} more" if len(sites) > 8 else ""
            rows.append((f"only in {name}", f"{shown}{more}", ""))
    return rows


def _points(pair: Pair) -> list[dict[str, Any]]:
    return [
        {
            "words": point.words,
            "step": f"{point.step:,}",
            "address": place_of(point),
            "to": pair.first.links.layer(point.address, step=point.step),
            "what": shorten(what_of(point), 40),
            "first": number(point.first, 5),
            "second": number(point.second, 5),
        }
        for point in pair.difference.places()
    ]


def _curves(pairs: Sequence[Pair], subjects: Sequence[Subject], names: Sequence[str]) -> Spec:
    marks = [mark for pair in pairs for mark in parting_marks(pair.difference.parting)[:1]]
    readings: list[Reading] = [subject.reading for subject in subjects]
    spec = curves_of(readings, names, marks, titled=False, points=_POINTS)
    return spec if spec["data"] else empty_figure("Neither has a loss or gradients yet.")


def _parting(pair: Pair, chosen: str) -> Spec:
    difference = pair.difference
    if chosen:
        spec = _ratio(pair, chosen)
        if spec is None:
            return empty_figure("They have no such numbers of the same layers at the same steps.")
        return spec
    try:
        spec = parting_spec(difference.first, difference.second, difference.parting)
    except LookupError as error:
        return empty_figure(str(error))
    spec["layout"].pop("title", None)
    spec["layout"]["margin"] = {"t": 40}
    rows = difference.first.order.sorted(difference.parting.rows)
    spec["layout"]["meta"] = {"links": [{"to": pair.first.links.layer(row)} for row in rows]}
    return spec


def _ratio(pair: Pair, name: str) -> Spec | None:
    difference = pair.difference
    marks = parting_marks(difference.parting)
    spec = ratio_of_two(difference.first, difference.second, name, pair.names, marks)
    if spec is not None:
        spec["layout"].pop("title", None)
        spec["layout"]["margin"] = {"t": 40}
    return spec
