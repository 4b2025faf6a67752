"""What may be said of a run as a whole: one of a few states, with what it rests on.

    verdict = verdict_of(run)
    verdict.state                    # "no problems found"
    str(verdict)                     # "no problems found (53 checks, 300 steps, 6 examinations)"

Nothing is called fine that could not be judged. The states, the first that holds:

    crashed            the script ended with an error; findings are listed besides
    findings           at least one finding is a warning or an error
    interrupted        by Ctrl-C, or the process is gone
    running            still being written; what was found so far
    not judged         nobody looked, what a diagnosis needs was not seen, or little was learnt
                       (or nothing shows that anything was) and nothing says why
    too early to tell  fewer than `EARLY` steps
    no problems found  with the checks, steps and examinations that this rests on
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from nethook.text.findings import SEVERITIES, read_findings
from nethook.text.findings import verdict as counted_findings
from nethook.text.numbers import count

if TYPE_CHECKING:
    from nethook.runs.reading.run import Run

State: TypeAlias = Literal[
    "crashed", "findings", "interrupted", "running", "not judged", "too early to tell",
    "no problems found",
]  # fmt: skip

EARLY: Final = 20
"""Steps below which trends are not judged: most rules need a dozen losses and more."""


_DOUBTS: Final = ("not-learning", "doubtful-result")
"""Notes of these codes: what was recorded is no sign that the run does its job."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A state, what it rests on, and how bad it is.

    `severity` is `error`, `warning` or `info` (of the worst finding), `good`, or `quiet` where
    nothing can be said.
    """

    state: State
    why: str
    severity: str

    def __str__(self) -> str:
        if self.state == "findings":
            return self.why
        if self.state == "no problems found":
            return f"{self.state} ({self.why})"
        return f"{self.state}: {self.why}"

    @property
    def is_fine(self) -> bool:
        """Whether the run was judged, and nothing at `warning` or above was found."""
        return self.state == "no problems found"


def verdict_of(
    run: Run, findings: Sequence[Mapping[str, Any]] | None = None, checks: int | None = None
) -> Verdict:
    """The verdict on a run.

    Arguments:
        run: what was recorded.
        findings: of a diagnosis that was just made, as plain data; those in the file otherwise.
        checks: how many rules that diagnosis ran.
    """
    info = run.info
    read = read_findings(run.findings if findings is None else findings)
    worst = next((s for s in SEVERITIES if any(one.severity == s for one in read)), "")
    serious = worst in ("error", "warning")
    states = [rank.state for rank in run.ranks]
    error, interrupted = _ending(info)
    told = counted_findings(read) if read else ""
    if error and not interrupted:
        rest = f"; {told}" if told else ""
        return Verdict("crashed", f"the script ended with {error}{rest}", "error")
    if serious:
        return Verdict("findings", told, worst)
    steps = _steps(info, run)
    diagnosis = info.get("diagnosis")
    looked = findings is not None or bool(diagnosis)
    basis = _basis(info, diagnosis, checks, steps)
    if interrupted or (states and "open" not in states and "died" in states):
        how = "by Ctrl-C" if interrupted else "its process ended without closing the run"
        so_far = f"; no problems found before ({basis})" if looked and steps >= EARLY else ""
        return Verdict("interrupted", f"{how} after {count(steps, 'step')}{so_far}", "quiet")
    unjudged = _not_judged(info, looked=looked, steps=steps)
    if "open" in states:
        said = "no problems found so far" if not unjudged and steps >= EARLY else ""
        reason = unjudged or f"too early to tell after {count(steps, 'step')}"
        return Verdict("running", f"{said} ({basis})" if said else reason, "quiet")
    if unjudged:
        return Verdict("not judged", unjudged, "quiet")
    if steps < EARLY:
        rest = "nothing is wrong in it" if steps == 1 else "nothing is wrong in them"
        return Verdict("too early to tell", f"{count(steps, 'step')}, and {rest} so far", "quiet")
    if any(one.code in _DOUBTS for one in read):
        why = (
            "little was learnt, and nothing says why: the task may be that noisy, or it is a fault"
            if any(one.code == _DOUBTS[0] for one in read)
            else "nothing shows that it does its job: the task may be that hard, or it is a fault"
        )
        return Verdict("not judged", f"{why} ({basis}; {told})", "info")
    notes = f"; {told}" if told else ""
    return Verdict("no problems found", f"{basis}{notes}", "good" if not told else "info")


def _ending(info: Mapping[str, Any]) -> tuple[str, bool]:
    """What the script ended with, in a line, and whether that was Ctrl-C."""
    ended = info.get("ended")
    if not isinstance(ended, Mapping):
        return "", False
    return str(ended.get("error") or ""), ended.get("interrupted") is True


def _steps(info: Mapping[str, Any], run: Run) -> int:
    totals = info.get("totals")
    if isinstance(totals, Mapping) and isinstance(totals.get("steps"), int):
        return int(totals["steps"])
    return max((rank.last_step + 1 for rank in run.ranks), default=0)


def _basis(info: Mapping[str, Any], diagnosis: Any, checks: int | None, steps: int) -> str:
    """`53 checks, 300 steps, 6 examinations`; what is not known is left out."""
    if checks is None and isinstance(diagnosis, Mapping):
        kept = diagnosis.get("checks")
        checks = kept if isinstance(kept, int) else None
    parts = [] if checks is None else [count(checks, "check")]
    parts.append(count(steps, "step"))
    if made := examinations(info):
        parts.append(count(made, "examination"))
    return ", ".join(parts)


def examinations(info: Mapping[str, Any]) -> int:
    """How many experiments on a copy have given an answer."""
    examined = info.get("examined")
    results = examined.get("results") if isinstance(examined, Mapping) else examined
    answered = ("fine", "found", "question")
    return sum(
        isinstance(result, Mapping) and result.get("outcome") in answered
        for result in (results if isinstance(results, Sequence) else ())
    )


def _not_judged(info: Mapping[str, Any], *, looked: bool, steps: int) -> str:
    """Why nothing can be said; "" where it can."""
    if not looked:
        return "no diagnosis is recorded in this run"
    if steps == 0:
        return "no step was recorded"
    if info.get("clock") == "forward":
        return "no backward pass was seen"
    totals = info.get("totals")
    if isinstance(totals, Mapping) and "backwards" in totals and not info.get("losses"):
        return "no loss was seen"
    return ""
