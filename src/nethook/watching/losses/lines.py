"""The lines of a script that make losses: which series each has, and what these are called."""

from __future__ import annotations

from nethook.hooks.process.source_line import LastLine, ScriptLine
from nethook.watching.evaluations.thinning import Thinning
from nethook.watching.losses.loops import Loops
from nethook.watching.losses.record import Analysis
from nethook.watching.losses.samples import NOTHING


class Series:
    """The losses that one line of the script makes in one way."""

    __slots__ = (
        "analysis", "counting", "last_record", "name", "passes", "root", "where",
    )  # fmt: skip

    def __init__(self, name: str, where: ScriptLine, analysis: Analysis | None) -> None:
        self.name = name
        self.where = where
        self.analysis = analysis
        self.root = None if analysis is None else analysis.root
        self.counting = NOTHING if analysis is None else analysis.counting
        self.last_record = -1  # the step of the last record
        self.passes = Thinning()  # passes without gradient in which it was seen


class Lines:
    """The lines that call `backward`, and those that call a loss without gradient."""

    def __init__(self) -> None:
        self.loops = Loops()
        """Which of them run the loop of a library."""
        self.ways = 0
        """How many ways of making a loss were met so far."""
        self._trained: dict[tuple[str, int], list[Series]] = {}
        self._evaluated: dict[tuple[str, int, str], Series] = {}
        self._names: set[str] = set()
        self._finder = LastLine()
        self._last: tuple[ScriptLine | None, list[Series]] = (None, [])

    def __len__(self) -> int:
        """How many lines of the script have called `backward` so far."""
        return len(self._trained)

    def calling(self, own: int) -> tuple[ScriptLine, list[Series]]:
        """The line that calls `backward` now, with its losses; `own`: see `line_of_script`."""
        where = self._finder.find(own + 1)
        last, of_line = self._last
        if where is not last:
            known = self._trained.get(where[:2])
            of_line = self._begin(where) if known is None else known
            self._last = where, of_line
        return where, of_line

    def _begin(self, where: ScriptLine) -> list[Series]:
        """The losses of a line that is new: those of another one, where a trainer's loop goes on.

        `trainer.fit(…)` and, further down, `trainer.fit(…, ckpt_path=…)` train on one loss.
        """
        first = self.loops.begins(where)
        of_line = self._trained[where[:2]] = (
            [] if first is where else self._trained.get(first[:2], [])
        )
        return of_line

    def add(self, where: ScriptLine, of_line: list[Series], analysis: Analysis) -> Series:
        """A line makes its loss in a new way."""
        series = Series(self.name_of(where), where, analysis)
        of_line.append(series)
        self.ways += 1
        return series

    def evaluated(self, where: ScriptLine, function: str) -> Series:
        """The losses that a line makes by calling a function in passes without gradient."""
        where = self.loops.first(where)
        key = (where.file, where.line, function)
        series = self._evaluated.get(key)
        if series is None:
            series = self._evaluated[key] = Series(self.name_of(where), where, None)
        return series

    def name_of(self, where: ScriptLine) -> str:
        """`train.py:42`; another loss of that line is `train.py:42#1`."""
        short, number = str(where), 1
        name = short
        while name in self._names:
            name = f"{short}#{number}"
            number += 1
        self._names.add(name)
        return name
