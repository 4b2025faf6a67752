"""What experiments on a copy have shown: results, as rules read them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from nethook.doctor.finding import Evidence, Finding, Severity
from nethook.doctor.history import Examined, History


def first(history: History, experiment: str, **facts: object) -> Examined | None:
    """The first result that shows a fault, or else asks a question; with these facts, if any."""
    results = [
        result
        for result in history.examined(experiment)
        if all(result.fact(name) == value for name, value in facts.items())
    ]
    for outcome in ("found", "question"):
        for result in results:
            if result.outcome == outcome:
                return result
    return None


def number(result: Examined, name: str, default: float = math.nan) -> float:
    """A fact that is a number."""
    value = result.fact(name, default)
    return float(value) if isinstance(value, int | float) else default


def text(result: Examined, name: str) -> str:
    """A fact that is text; "" where there is none."""
    value = result.fact(name, "")
    return value if isinstance(value, str) else ""


def numbers(result: Examined, name: str) -> list[int]:
    """A fact that is a list of whole numbers."""
    value = result.fact(name, ())
    return [one for one in value if isinstance(one, int)] if isinstance(value, list) else []


def lines(result: Examined) -> tuple[str, ...]:
    """The lines of the script that a result names; that of its backward pass where it has none."""
    value = result.fact("lines", ())
    named = tuple(map(str, value)) if isinstance(value, list | tuple) else ()
    return named or ((result.loss,) if result.loss else ())


def since(result: Examined) -> int:
    """The step that was examined: of those before it nothing is known."""
    return result.step


def finding_of(
    history: History,
    result: Examined,
    code: str,
    message: str,
    fix: str,
    evidence: Mapping[str, Evidence],
    severity: Severity | None = None,
) -> Finding:
    """A finding that rests on one result: dated by the step that was examined, with its lines.

    `severity` is `error` where the result shows a fault, and `info` where it asks, unless said
    otherwise.
    """
    return Finding(
        code,
        severity or ("error" if result.outcome == "found" else "info"),
        message,
        fix,
        first_step=since(result),
        last_step=max(since(result), history.steps - 1),
        evidence=dict(evidence),
        lines=lines(result),
    )


def meant(result: Examined) -> str:
    """Of a question, what is asked, as it stands behind a sentence; "" of a fault."""
    if result.outcome == "found":
        return ""
    return f" Is that meant? {result.reason[:1].upper()}{result.reason[1:]}."
