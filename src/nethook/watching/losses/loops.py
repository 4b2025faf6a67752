"""Lines of a script from which a library runs the loop: `trainer.fit(model)`.

A line that calls `backward` names its loss. Where the loop is a library's, that is the line which
has called the library, and a script may do so twice: to train, and to go on from a checkpoint. Both
lines are one loss. They are told from lines that only pass through a library on their way to
`backward` (`accelerator.backward(loss)`): a loop calls the model from the same line, too, through
the same function of the library.
"""

from __future__ import annotations

from types import CodeType

from nethook.hooks.process.source_line import ScriptLine, library_calls


class Loops:
    """Which lines run a loop of a library, and which of them are the same."""

    def __init__(self) -> None:
        self.unsure: tuple[ScriptLine, CodeType] | None = None
        """The last new line that calls `backward` through a library, until the next call of a
        model tells whether it runs a loop."""
        self._first: dict[CodeType, ScriptLine] = {}  # function of a library -> its first line
        self._same: dict[tuple[str, int], ScriptLine] = {}

    def begins(self, line: ScriptLine) -> ScriptLine:
        """A new line calls `backward`; the line whose loop it goes on with, or itself."""
        found = next(library_calls(), None)
        if found is None or found[0] != line:
            return line
        first = self._first.get(found[1])
        if first is None:
            self.unsure = found
            return line
        self._same[line[:2]] = first
        return first

    def called(self) -> None:
        """A model is called in training: whether the line in question runs a loop is known."""
        unsure, self.unsure = self.unsure, None
        if unsure is not None and unsure in library_calls():
            self._first.setdefault(unsure[1], unsure[0])

    def first(self, line: ScriptLine) -> ScriptLine:
        """The line that stands for this one."""
        return self._same.get(line[:2], line)
