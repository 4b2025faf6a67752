"""The first screen of a run: the verdict, the curves, and every layer over every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dash import html

from nethook.doctor.verdict import verdict_of
from nethook.drawing.data import Spec
from nethook.drawing.heatmap import heatmap
from nethook.drawing.quantities import QUANTITIES
from nethook.figures.coverage import SOURCES, WHOLE, coverage, coverage_line
from nethook.figures.reading import Reading
from nethook.figures.runs import overview_spec
from nethook.page.folder import Opened
from nethook.page.html import (
    Node,
    Part,
    Shown,
    attributes,
    empty_figure,
    facts,
    figure,
    note,
    place,
    select,
    severity_badge,
    switch,
    time_of,
)
from nethook.page.html import anchor as way
from nethook.page.sections.about import facts_of, subtitle_of
from nethook.page.sections.folding import first_folds, fold_grid, groups_of, visible
from nethook.page.urls import Place, run_link, site_link
from nethook.runs import names
from nethook.text.escape import shorten
from nethook.text.numbers import share
from nethook.text.paragraphs import capitalized

_POINTS: Final = 500  # of a line
_TALL: Final = 68  # pixels of a panel: all of them and the heatmap below fit a large screen
_CELLS: Final = 16_000  # of a heatmap
_MOST_FINDINGS: Final = 8  # in the strip; the view of findings has all
_FIRST: Final = ("gradients", "output_gradients", "spread")  # what is shown unless it is chosen
_NEEDS: Final = {
    "gradients": names.PARAM_GRADS,
    "output_gradients": names.GRADS,
    "updates": names.UPDATES,
    "weights": names.PARAMS,
}


def overview(opened: Opened, reading: Reading, where: Place) -> Shown:
    """The first screen."""
    offered = offered_quantities(reading)
    chosen = where.quantity(
        next((quantity for quantity in (*_FIRST, *offered) if quantity in offered), "spread")
    )
    state = (opened.tag, chosen, where.text("fold"), "fold" in where.query, where.flag("all"))
    tag = repr(state)
    body = [
        html.H1(shorten(opened.entry.name, 80)),
        place("sub"),
        place("verdict"),
        html.Div(figure("curves", "Loss, learning rate, gradients and updates over steps", 420),
                 className="card"),
        html.Div(
            [
                html.Div(
                    [html.H2("Layers over steps"), place("choose", className="tools tight")],
                    className="row",
                ),
                place("explain"),
                place("folds"),
                figure("heatmap", "Every layer over every step", 320),
            ],
            className="card",
        ),
    ]  # fmt: skip
    parts = {
        "sub": Part(opened.tag, lambda: html.P(subtitle_of(reading), className="sub")),
        "verdict": Part(opened.tag, lambda: verdict_strip(opened, reading)),
        "curves": Part(opened.tag, lambda: curves_spec(reading), figure=True),
        "choose": Part(tag, lambda: _choose(offered, chosen, where)),
        "explain": Part(tag, lambda: _explain(reading, chosen)),
        "folds": Part(tag, lambda: _folds(reading, chosen, where)),
        "heatmap": Part(tag, lambda: heatmap_spec(opened, reading, chosen, where), figure=True),
    }
    return Shown(f"{shorten(opened.entry.name, 60)} – nethook", body, parts)


def curves_spec(reading: Reading) -> Spec:
    """Loss, learning rate, gradient norm, update ratio."""
    spec = overview_spec(reading, reading.marks, points=_POINTS, tall=_TALL)
    return spec if spec["data"] else empty_figure("No step has been recorded yet.")


def offered_quantities(reading: Reading) -> list[str]:
    """What the heatmap can show of this run, without reading it."""
    there = {quantity for _, quantity in reading.catalogue}
    kinds = {str(site.info.get("activation")) for site in reading.order.sites.values()}
    told = kinds - {"None"}
    units = any(
        info.units for (_, quantity), info in reading.catalogue.items() if quantity == names.OUTPUTS
    )
    offered = []
    for name in QUANTITIES:
        needed = _NEEDS.get(name, names.OUTPUTS)
        fits = {
            "silent": units and (not told or "rectifier" in told),
            "ends": not told or "bounded" in told,
        }
        if needed in there and fits.get(name, True):
            offered.append(name)
    return offered


def verdict_strip(opened: Opened, reading: Reading) -> Node:
    """What is wrong, in a few lines, each leading to its place; and the numbers of the run."""
    findings = reading.findings
    verdict = verdict_of(reading.run)
    is_found = verdict.state == "findings"
    word = capitalized(verdict.why if is_found else verdict.state)
    rows = [
        html.Li(
            way(
                [
                    severity_badge(finding),
                    html.Span(shorten(finding.message or finding.code, 300), className="what"),
                    time_of(finding),
                ],
                run_link(opened.entry.id, "findings", n=finding.anchor.rpartition("-")[2]),
            )
        )
        for finding in findings[:_MOST_FINDINGS]
    ]
    if len(findings) > _MOST_FINDINGS:
        more = f"and {len(findings) - _MOST_FINDINGS:,} more"
        rows.append(html.Li(way(more, run_link(opened.entry.id, "findings"))))
    gone = [rank for rank in reading.ranks if rank.state in ("missing", "unreadable")]
    notes: list[Node] = [] if is_found else [note(capitalized(verdict.why) + ".")]
    if opened.state == "died":
        notes.append(note("The writer has gone: its process ended without closing the run."))
    if gone:
        notes.append(note(f"{len(gone)} of {len(reading.ranks)} ranks are missing."))
    kind = "" if verdict.severity == "quiet" else verdict.severity
    inside = [html.Div(word, className="word"), *notes]
    inside += [html.Ol(rows)] if rows else []
    return html.Section(
        [*inside, facts(facts_of(reading))],
        className=f"card verdict {kind}",
        **attributes(aria_label="Verdict"),
    )


def _choose(offered: list[str], chosen: str, where: Place) -> Node:
    if not offered:
        return None
    options = [(name, QUANTITIES[name].title) for name in offered]
    everything = where.flag("all")
    return [
        select("q", options, chosen, "Quantity"),
        switch(
            "all", "all-time colours", on=everything,
            explain="Colours span all values there ever were; else the middle 96 % of them.",
        ),
    ]  # fmt: skip


def _explain(reading: Reading, chosen: str) -> Node:
    """What is seen, in one sentence, and how much of it was measured."""
    quantity = QUANTITIES[chosen]
    said = [quantity.explain]
    measured = coverage(reading, chosen)
    if measured is not None and measured < WHOLE:
        what = SOURCES.get(chosen, "outputs").replace("_", " ")
        said.append(
            f"Measured in {share(measured)} of the steps ({what}): watching kept its budget; the "
            "strip above the colours shows where."
        )
    return html.P(" ".join(said), className="explain")


def _folds(reading: Reading, chosen: str, where: Place) -> Node:
    """A button for every module that can be folded or opened."""
    grid = reading.grid(chosen)
    if grid is None:
        return None
    groups = groups_of(grid.rows, set(reading.layers()))
    if not groups:
        return None
    folds = folds_of(where, grid.rows, groups)
    shown = {row.name for row in visible(grid.rows, groups, folds)}
    buttons = []
    for name, places in groups.items():
        closed = name in shown and name in folds
        outer = any(name.startswith(f"{other}.") for other in folds)
        if outer:
            continue  # inside of what is folded
        new = folds - {name} if closed else (folds | {name})
        buttons.append(_fold_button(name, len(places), new, closed=closed))
    every = {name for name in groups if "." not in name}
    ends = [
        _plain_fold("fold all", every or set(groups)),
        _plain_fold("open all", set()),
    ]
    return html.Div(
        [*ends, *buttons], className="folds", role="group", **attributes(aria_label="Modules")
    )


def _fold_button(name: str, count: int, new: set[str], *, closed: bool) -> Node:
    return html.Button(
        f"{'▸' if closed else '▾'} {shorten(name, 40)} ({count})",
        type="button",
        className="param small",
        **attributes(
            data_param="fold", data_value="~".join(sorted(new)), data_keep="yes",
            aria_expanded=str(not closed).lower(),
        ),
    )  # fmt: skip


def _plain_fold(text: str, folds: set[str]) -> Node:
    return html.Button(
        text,
        type="button",
        className="param small",
        **attributes(data_param="fold", data_value="~".join(sorted(folds)), data_keep="yes"),
    )


def folds_of(where: Place, rows: Sequence[str], groups: dict[str, list[int]]) -> set[str]:
    """Which groups are folded: as the address says, else as few as are needed."""
    asked = where.names("fold")
    if asked is None:
        return first_folds(rows, groups)
    return {name for name in asked if name in groups}


def heatmap_spec(opened: Opened, reading: Reading, chosen: str, where: Place) -> Spec:
    """The heatmap of a quantity, folded; each row knows where a click on it leads."""
    grid = reading.grid(chosen)
    if grid is None:
        return empty_figure("The run has no such numbers yet.")
    groups = groups_of(grid.rows, set(reading.layers()))
    folds = folds_of(where, grid.rows, groups)
    shown = visible(grid.rows, groups, folds)
    columns = max(40, min(300, _CELLS // max(1, len(shown))))
    spec = heatmap(
        fold_grid(grid, shown), reading.marks, all_time=where.flag("all"), columns=columns,
        titled=False, switch=False, measured=coverage_line(reading, chosen),
    )  # fmt: skip
    spec["layout"]["margin"] = {"t": 12}
    links = []
    for row in shown:
        if row.folded:
            links.append({"fold": "~".join(sorted(folds - {row.name}))})
        else:
            links.append({"to": layer_link(opened, reading, row.name, q=chosen)})
    spec["layout"]["meta"] = {"links": links}
    return spec


def layer_link(opened: Opened, reading: Reading, name: str, **more: object) -> str:
    """Where a row leads: to its layer, or to the layer whose parameter it is; "" if to none."""
    owner = name
    if not reading.has(name, names.OUTPUTS):
        owners = reading.order.info(name).get("owners")
        owner = str(owners[0]) if isinstance(owners, list) and owners else name.rpartition(".")[0]
        if not reading.has(owner, names.OUTPUTS):
            return ""
    return site_link(opened.entry.id, owner, **more)
