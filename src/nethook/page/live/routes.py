"""From a place to what is shown there: a few sections, in a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nethook.drawing.data import Spec
from nethook.figures.difference import Difference
from nethook.page.folder import Folder, Opened
from nethook.page.live.links import LiveLinks
from nethook.page.section import Section, Subject
from nethook.page.sections.comparison import Choice, Pair, comparison
from nethook.page.sections.cost import cost
from nethook.page.sections.depth import depth
from nethook.page.sections.findings import findings
from nethook.page.sections.layer import layer, step_of
from nethook.page.sections.layerlist import layerlist
from nethook.page.sections.layers import layers, offered_quantities
from nethook.page.sections.loop import curves_spec, loop
from nethook.page.sections.model import model
from nethook.page.sections.pictures import pictures
from nethook.page.sections.ran import ran
from nethook.page.sections.runs import runs
from nethook.page.sections.study import all_studies, studies
from nethook.page.sections.verdict import verdict
from nethook.page.states import STATES
from nethook.page.studies import folder_beside, names_of, studies_in
from nethook.page.summaries import Summaries
from nethook.page.urls import MOST_COMPARED, VIEWS, Place, run_link
from nethook.runs import names
from nethook.text.escape import shorten

_OFFERED = 200  # runs in a choice


@dataclass(frozen=True)
class Shown:
    """A view: its title, the sections of which the first stands in the bar, and what it is of."""

    title: str
    sections: Sequence[Section] = field(repr=False)
    name: str = ""  # of the run, in the bar
    key: str = ""  # changes where other sections stand there, within one place
    of: Opened | None = field(default=None, repr=False)  # the run that is read
    step: int | None = None  # where figures have a line
    heading: str = "h2"  # the element of the first section's title

    @property
    def has_studies(self) -> bool:
        """Whether studies were saved beside the run."""
        return self.of is not None and bool(studies_in(folder_beside(self.of.entry.path)))


class Views:
    """All views of a folder, and what they keep between two looks."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._summaries = Summaries()
        self._found: dict[tuple[str, str], Difference] = {}

    def show(self, where: Place) -> Shown:
        """The view at a place."""
        where = self.settled(where)
        if where.kind == "waiting":
            return self._note("waiting", self.folder.title)
        if where.kind == "list":
            section = runs(self.folder, self._summaries, where)
            return Shown("Runs – nethook", [_state(None), section])
        if where.kind == "compare":
            return self._compared(where)
        entry = self.folder.entry(where.run) if where.kind == "run" else None
        if entry is None:
            return self._note("nowhere", "")
        opened = self.folder.open(entry)
        try:
            return self._run(opened, where)
        except Exception as error:  # a file of a stranger may be wrong in unheard-of ways
            return self._broken(
                replace(opened, state="broken", problem=f"{type(error).__name__}: {error}")
            )

    def settled(self, where: Place) -> Place:
        """A place, where a single run is served: its run is the first page."""
        if not self.folder.single or where.kind not in ("list", "run"):
            return where
        entries = self.folder.entries()
        if not entries:
            return replace(where, kind="waiting")
        return replace(where, kind="run", run=entries[0].id) if where.kind == "list" else where

    def read_rest(self, where: Place) -> None:
        """Read what the views of a run can show, if nothing is written to it any more."""
        entry = self.folder.entry(where.run)
        opened = self.folder.open(entry) if entry is not None else None
        if opened is None or opened.reading is None or opened.state == "open":
            return
        for name in offered_quantities(opened.reading):
            with opened.lock:
                opened.reading.grid(name)
        for view in VIEWS:
            for section in self._run(opened, Place("run", where.run, view)).sections:
                with opened.lock:
                    section.data()
                    for drawing in section.figures.values():
                        drawing.make()

    def fine(self, run: str, between: tuple[float, float]) -> Spec | None:
        """The curves of a run between two steps, as fine as they are kept."""
        entry = self.folder.entry(run)
        opened = self.folder.open(entry) if entry is not None else None
        if opened is None or opened.reading is None:
            return None
        with opened.lock:
            return curves_spec(_subject(opened), between)

    def _run(self, opened: Opened, where: Place) -> Shown:
        if opened.reading is None:
            return self._broken(opened)
        subject = _subject(opened)
        name = shorten(opened.entry.name, 60)
        title = f"{name} – nethook"
        site = where.site()
        reading = opened.reading
        if where.view == "layer" and site is not None:
            known = reading.has(site, names.OUTPUTS) or site in reading.order.sites
            if known:
                step, _ = step_of(reading, where)
                sections = [layer(subject, where, site), pictures(subject, site)]
                title = f"{shorten(site or '(model)', 60)} – nethook"
                return self._framed(opened, title, sections, "one", step)
        saved = studies_in(folder_beside(opened.entry.path)) if where.view == "studies" else []
        made: dict[str, Callable[[], list[Section]]] = {
            "": lambda: [verdict(subject), loop(subject, where), layers(subject, where)],
            "layer": lambda: [layerlist(subject)],
            "depth": lambda: [self._depth(opened, subject, where)],
            "findings": lambda: [findings(subject, _anchor(where))],
            "model": lambda: [model(subject)],
            "health": lambda: [cost(subject), ran(subject)],
            "studies": lambda: [studies(saved), *all_studies(saved)],
        }
        words = {"layer": "Layers", "depth": "Depth", "health": "Overhead"}
        if where.view:
            title = f"{words.get(where.view, where.view.capitalize())} – nethook"
        shown = self._framed(opened, title, made[where.view](), names_of(saved) if saved else "")
        return replace(shown, heading="h1") if where.view else shown

    def _depth(self, opened: Opened, subject: Subject, where: Place) -> Section:
        entry = self.folder.entry(where.text("with")) if where.text("with") else None
        other = self.folder.open(entry) if entry is not None and entry != opened.entry else None
        beside = _subject(other) if other is not None and other.reading is not None else None
        others = [(each.id, each.name) for each in self.folder.entries() if each != opened.entry]
        return depth(subject, where, others[:_OFFERED], beside)

    def _framed(
        self,
        opened: Opened,
        title: str,
        sections: Sequence[Section],
        key: str = "",
        step: int | None = None,
    ) -> Shown:
        return Shown(title, [_state(opened), *sections], opened.entry.name, key, opened, step)

    def _broken(self, opened: Opened) -> Shown:
        title = f"{shorten(opened.entry.name, 60)} – nethook"
        said = {"kind": "broken", "name": opened.entry.name, "problem": opened.problem}
        section = Section("note", opened.problem, lambda: said)
        state = _state(replace(opened, reading=None))
        return Shown(title, [state, section], opened.entry.name, "broken", opened)

    def _note(self, kind: str, name: str) -> Shown:
        said = {"kind": kind, "name": "", "problem": ""}
        return Shown("nethook", [_state(None), Section("note", kind, lambda: said)], name, kind)

    # Comparing

    def _compared(self, where: Place) -> Shown:
        asked = [run for run in where.text("runs").split("~") if run][:MOST_COMPARED]
        entries = [entry for run in dict.fromkeys(asked) if (entry := self.folder.entry(run))]
        opened = [self.folder.open(entry) for entry in entries]
        whole = [run for run in opened if run.reading is not None]
        choice = self._choice(opened, where.number("b") or 1)
        if len(whole) < 2:
            section = Section("few", repr(choice), lambda: {"choice": choice})
            return Shown("Compare – nethook", [_state(None), section], "compare", "few")
        subjects = [_subject(run) for run in whole]
        called = _names(whole)
        pairs = [
            Pair(
                subjects[0],
                subjects[at],
                (called[0], called[at]),
                self._difference(whole[0], whole[at]),
            )
            for at in range(1, len(whole))
        ]
        section = comparison(pairs, where, choice)
        return Shown("Compare – nethook", [_state(None), section], "compare", f"{len(whole)}")

    def _choice(self, opened: Sequence[Opened], index: int) -> Choice:
        """The runs that are compared, each with a way to leave it out, and those to add."""
        ids = [run.entry.id for run in opened]
        chosen = []
        for run in opened:
            rest = "~".join(other for other in ids if other != run.entry.id)
            to = run_link(run.entry.id) if run.reading is not None else ""
            chosen.append((run.entry.name, to, rest))
        more = [entry for entry in self.folder.entries() if entry.id not in ids][:_OFFERED]
        add = [("", "choose …"), *(("~".join([*ids, e.id]), e.name) for e in more)]
        return Choice(chosen, add if more and len(ids) < MOST_COMPARED else (), index)

    def _difference(self, one: Opened, two: Opened) -> Difference:
        """What is different between two runs as they are now: found once for each pair."""
        key = (one.tag, two.tag)
        if key not in self._found:
            assert one.reading is not None and two.reading is not None  # noqa: PT018 - both were read
            if len(self._found) > 8:
                self._found.clear()
            self._found[key] = Difference(one.reading.run, two.reading.run)
        return self._found[key]


def _subject(opened: Opened) -> Subject:
    assert opened.reading is not None  # only those that were read come here
    links = LiveLinks(opened.entry.id, opened.reading)
    return Subject(opened.reading, links, opened.entry.name, opened.tag, live=True)


def _anchor(where: Place) -> str:
    asked = where.text("n")
    return f"finding-{asked}" if asked.isdecimal() else ""


def _state(opened: Opened | None) -> Section:
    """The word for how the run is, in the bar."""
    step = -1 if opened is None or opened.reading is None else opened.reading.last_step
    state = "" if opened is None else opened.state

    def data() -> Mapping[str, Any]:
        word, kind, explain = STATES[state] if state else ("", "", "")
        shown = f"{word} · step {step:,}" if step >= 0 else word
        return {"state": state, "word": shown, "kind": kind, "explain": explain}

    return Section("state", f"{state}-{step}", data)


def _names(opened: Sequence[Opened]) -> list[str]:
    """What to call the runs: their names, numbered where two have the same."""
    given = [shorten(run.entry.name, 40) for run in opened]
    return [
        name if given.count(name) == 1 else f"{name} ({number})"
        for number, name in enumerate(given, start=1)
    ]
