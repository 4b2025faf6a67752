"""What an experiment is, and what comes of it.

    class EvaluationRepeats:
        name = "evaluation repeats"
        turn = 4

        def applies(self, rehearsal: Rehearsal) -> str | None:
            return None if has_dropout(rehearsal.model) else "nothing in it draws random numbers"

        def run(self, rehearsal: Rehearsal) -> Result:
            ...
            return found(self, rows=3)

An experiment says by itself where it does not apply, in words that a user reads. What it raises is
caught (`examine`) and becomes a result too: one that failed, or that could not be had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from nethook.examining.refusals import NotReplayableError, OutOfTimeError

if TYPE_CHECKING:
    from nethook.examining.rehearsal import Rehearsal

__all__ = [
    "OUTCOMES", "Experiment", "NotReplayableError", "OutOfTimeError", "Outcome", "Result", "fine",
    "found", "not_applicable", "question",
]  # fmt: skip

Outcome = Literal["fine", "found", "question", "not applicable", "failed"]
"""`found`: a fault is shown; `question`: it may be meant; `failed`: an error of nethook's own."""

OUTCOMES: Final[tuple[Outcome, ...]] = ("fine", "found", "question", "not applicable", "failed")


class Experiment(Protocol):
    """One question about a training step, answered by running it again on a copy."""

    name: str
    """In words: "samples are independent"."""

    turn: int
    """Lower numbers run first. Time may run out: what nothing else could show comes first."""

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why it does not apply, in words that are shown to the user."""

    def run(self, rehearsal: Rehearsal) -> Result:
        """Does it. May raise `NotReplayableError`."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an experiment, as plain data: it is stored in the run file."""

    experiment: str
    outcome: Outcome
    reason: str = ""
    """Why it does not apply, or what failed."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Numbers and names that a rule of the doctor turns into a finding."""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Result:
        """From plain data; a file may say anything, so that what does not fit is left out."""
        outcome = data.get("outcome")
        facts = data.get("facts")
        seconds = data.get("seconds", 0.0)
        return cls(
            str(data.get("experiment", "")),
            outcome if outcome in OUTCOMES else "failed",
            str(data.get("reason", "")),
            dict(facts) if isinstance(facts, Mapping) else {},
            float(seconds) if isinstance(seconds, int | float) else 0.0,
        )


def fine(experiment: Experiment, **facts: Any) -> Result:
    """Nothing is wrong, as far as this experiment can tell."""
    return Result(experiment.name, "fine", "", facts)


def found(experiment: Experiment, **facts: Any) -> Result:
    """A fault, with its evidence."""
    return Result(experiment.name, "found", "", facts)


def question(experiment: Experiment, reason: str, **facts: Any) -> Result:
    """Something that may be a fault or meant; `reason` says what would tell."""
    return Result(experiment.name, "question", reason, facts)


def not_applicable(experiment: Experiment, reason: str, **facts: Any) -> Result:
    """It does not apply, for this reason."""
    return Result(experiment.name, "not applicable", reason, facts)
