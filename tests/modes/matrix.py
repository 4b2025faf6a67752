"""The matrix: every feature of nethook in every mode that PyTorch runs in.

A file `cells_<subject>.py` of this folder declares modes and cells, and nothing else needs to know
of it: `test_matrix.py` finds it, runs every cell, and `tools/modes_page.py` puts it into
docs/modes.md.

    COMPILED = mode("torch.compile", "fullgraph=True", "the whole model is one graph")

    @cell("watch", COMPILED, "mlp", "gpt2", guard=no_inner_taps, without="nothing is recorded")
    def watch_fullgraph(model):
        ...                        # at least 3 steps; compares with eager; raises AssertionError

A cell holds twice. `check` must pass; and it must *fail* while `guard` is entered, which switches
off what nethook does for this mode. The second is the proof that the first could have failed.

A cell whose work is done in other processes says `elsewhere=True`: its check is called with one
more argument, `off`, which makes the context to enter there: `nullcontext`, or the guard, which
must then be a function at the top level of a module (it is pickled by name).

A cell that cannot hold on every torch says on which, and why: `lacking=Lacking("…", until="2.10")`.
There its check must fail, so that the page says nothing that is not so.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FEATURES: Final = ("trace", "edit", "features", "watch")
"""The columns."""

GROUPS: Final = (
    "torch.compile",
    "Export",
    "Activation checkpointing",
    "Mixed precision",
    "Backward passes",
    "torch.func",
    "DDP",
    "FSDP2",
    "Tensor parallel",
    "Threads and processes",
    "Devices",
    "Life of a model",
    "Real models",
)
"""The order of the page."""

Guard = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Lacking:
    """The torches on which a cell does not hold: of `since` or later, before `until`.

    Attributes:
        why: what torch lacks there, in half a sentence.
        since: the first such minor release, as "2.14"; "": all before `until`.
        until: the first on which it holds again; "": none so far.
    """

    why: str
    since: str = ""
    until: str = ""

    def __post_init__(self) -> None:
        assert self.since or self.until, "on no torch at all: declare it as refused"
        assert self.why

    def on(self, version: str) -> bool:
        """Whether a torch of this version is among them."""
        this = _release(version)
        return (not self.since or this >= _release(self.since)) and (
            not self.until or this < _release(self.until)
        )

    @property
    def where(self) -> str:
        """Which torches these are, in words."""
        if not self.since:
            return f"before torch {self.until}"
        if not self.until:
            return f"since torch {self.since}"
        return f"from torch {self.since} until {self.until}"


def _release(version: str) -> tuple[int, ...]:
    """Major and minor: a release candidate of 2.15 is 2.15."""
    return tuple(int(each) for each in re.findall(r"\d+", version)[:2])


@dataclass(frozen=True)
class Mode:
    """One row: a way to run a model.

    Attributes:
        group: one of `GROUPS`.
        name: as it is typed, such as `fullgraph=True`.
        what: half a sentence that says it in words.
        beside: features for which the mode means nothing -> why.
    """

    group: str
    name: str
    what: str
    beside: dict[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Cell:
    """One feature in one mode with one model.

    Attributes:
        refused: why nethook refuses, as it says it; "" where it works.
        without: what happens without the guard, in half a sentence.
        lacking: the torches on which it does not hold, if there are any.
    """

    feature: str
    mode: Mode
    model: str
    check: Callable[..., None]
    guard: Guard
    without: str
    refused: str = ""
    elsewhere: bool = False
    lacking: Lacking | None = None

    @property
    def id(self) -> str:
        """The name of its tests."""
        words = (self.feature, self.mode.group, self.mode.name, self.model)
        return " ".join(" ".join(words).split())

    def run(self, *, guarded: bool = True) -> None:
        """Runs the check, with nethook as it is or with the guard switched off."""
        off = nullcontext if guarded else self.guard
        if self.elsewhere:
            self.check(self.model, off)
        else:
            with off():
                self.check(self.model)


_MODES: list[Mode] = []
_CELLS: list[Cell] = []


def mode(group: str, name: str, what: str, **beside: str) -> Mode:
    """Declares a row of the page; keywords say for which features it means nothing, and why."""
    assert group in GROUPS, f"{group!r} is not among the groups of the page"
    assert set(beside) <= set(FEATURES)
    made = Mode(group, name, what, beside)
    _MODES.append(made)
    return made


def cell(
    feature: str,
    in_mode: Mode,
    *models: str,
    guard: Guard,
    without: str,
    refused: str = "",
    elsewhere: bool = False,
    lacking: Lacking | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declares a cell for each of the models; the function is its check."""
    assert feature in FEATURES
    assert models

    def declare(check: Callable[..., None]) -> Callable[..., None]:
        _CELLS.extend(
            Cell(feature, in_mode, model, check, guard, without, refused, elsewhere, lacking)
            for model in models
        )
        return check

    return declare


def subjects() -> list[str]:
    """The files that declare cells."""
    return sorted(path.stem for path in Path(__file__).parent.glob("cells_*.py"))


def load() -> tuple[list[Mode], list[Cell]]:
    """Every mode in the order of the page, and every cell."""
    for name in subjects():
        importlib.import_module(f"tests.modes.{name}")
    order = {group: place for place, group in enumerate(GROUPS)}
    return sorted(_MODES, key=lambda each: order[each.group]), list(_CELLS)


def of(mode: Mode, feature: str, cells: list[Cell]) -> Iterator[Cell]:
    """The cells of one field of the table."""
    return (each for each in cells if each.mode is mode and each.feature == feature)
