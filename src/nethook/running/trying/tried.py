"""What came of a trial, as plain data that the run file keeps in `info["tried"]`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from nethook.running.trying.change import Change
from nethook.running.trying.comparing import Comparison


@dataclass(frozen=True)
class Tried:
    """A fix that was tried.

    Arguments:
        code: the finding that it belongs to.
        change: what was changed, in words.
        steps: over how many steps the losses were compared.
        train, eval: each loss as it is and with the change; None where there is none.
        judged_by: which of them must fall.
        helped: None where nothing could be said; `why` says why.
    """

    code: str
    change: str
    steps: int = 0
    train: tuple[float, float] | None = None
    eval: tuple[float, float] | None = None
    judged_by: str = "train"
    helped: bool | None = None
    why: str = ""

    @classmethod
    def of(cls, change: Change, compared: Comparison) -> Tried:
        """From a change and what it did."""
        train, evaluation = (
            None if pair is None else (pair.before, pair.after)
            for pair in (compared.train, compared.eval)
        )
        return cls(
            change.code, change.said, compared.steps, train, evaluation, change.judged_by,
            compared.helped, compared.why,
        )  # fmt: skip

    @classmethod
    def not_judged(cls, change: Change, why: str) -> Tried:
        """A change of which nothing can be said."""
        return cls(change.code, change.said, judged_by=change.judged_by, why=why)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
