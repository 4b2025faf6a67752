"""Scores of evaluations: the share of right answers, by the line that compares them with labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from nethook.runs.names import score_name
from nethook.runs.reading.results import Scalar

ACCURACY: Final = "evaluation accuracy"


class Score(NamedTuple):
    """A score, one point per evaluation; `label` names its line where the run has several."""

    label: str
    line: str
    scalar: Scalar

    @property
    def ends(self) -> list[float]:
        """Its first and its last value; of one evaluation the one."""
        value = self.scalar.value
        return [float(value[at]) for at in ((0, -1) if len(value) > 1 else (0,))]


def shown_scores(scalars: Mapping[str, Scalar]) -> dict[str, Score]:
    """The scores among the scalars of a run, by the names that they have there."""
    begin = score_name("")
    found = {name: s for name, s in scalars.items() if name.startswith(begin) and len(s)}
    lines = {name: name.removeprefix(begin) for name in found}
    return {
        name: Score(ACCURACY if len(found) == 1 else f"{ACCURACY}, {line}", line, found[name])
        for name, line in lines.items()
    }
