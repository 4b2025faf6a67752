"""Root cause over symptom: one finding per cause, its consequences under it.

What explains what is the order of `Cause`: the contract of the loop before loss and target, these
before data, data before settings of the optimizer, and symptoms last; that nothing is learnt at all
is reported when nothing else is. The start of a network comes before the settings where it is ill
by itself (a signal that is lost or explodes, a first loss that no fresh network has); where it is
merely odd and settings explain the run as well, these come first: the same start may train well at
another rate. What is lower in this order and does not begin earlier is a consequence.

Two findings of one cause stand side by side, unless one names the other as its consequence
(`LEADS_TO`). Of an explosion and a NaN, which may each lead to the other, the one that came first
is the cause.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

from nethook.doctor.finding import SEVERITIES, Finding
from nethook.doctor.rule import Cause
from nethook.doctor.signals.zero_gradients import ZEROS

_AFTERWARDS: Final = (
    "class-collapse",
    "dead-units",
    "saturated-activation",
    "vanishing-gradient",
)
"""What is left of a network after an explosion, or the first NaN."""

LEADS_TO: Final[dict[str, frozenset[str]]] = {
    "exploding-gradient": frozenset({"non-finite", *_AFTERWARDS}),
    "non-finite": frozenset({"exploding-gradient", *_AFTERWARDS}),
    "dead-units": frozenset({"class-collapse", "vanishing-gradient"}),
    "saturated-activation": frozenset({"class-collapse", "vanishing-gradient"}),
    "vanishing-gradient": frozenset({"class-collapse"}),
    "learning-rate-too-high": frozenset({"oscillating-loss", "adam-instability"}),
    "adam-instability": frozenset({"oscillating-loss"}),
    "clipping-too-tight": frozenset({"learning-rate-too-low"}),
    "weight-decay-too-strong": frozenset(
        {"learning-rate-too-high", "learning-rate-too-low", "diverged"}
    ),
    "diverged": frozenset({"oscillating-loss", "adam-instability", "clipping-too-tight"}),
    "input-collapsed": frozenset({"input-ignored"}),
    "output-misfits-loss": frozenset({"softmax-over-one"}),
    "padding-read": frozenset({"input-ignored"}),
    "samples-mixed": frozenset({"axes-scrambled"}),
}
"""Which symptoms, or settings, explain others of their own kind."""
EXAMINED: Final = frozenset(
    {
        "axes-scrambled",
        "input-ignored",
        "missing-terminal-mask",
        "padding-read",
        "random-evaluation",
        "samples-mixed",
        "sees-the-future",
        "softmax-over-one",
        "target-is-input",
        "target-misaligned",
        "target-shifted",
        "term-without-gradient",
    }
)
"""Findings that may be dated by the step that was examined: what the code does in it, it did in the
few steps before as well, and their consequences may have begun there."""
EARLY: Final = 16
"""Steps before an examined one that count as few."""


def root_causes(findings: Sequence[tuple[Cause, Finding]], slack: int = 0) -> list[Finding]:
    """The findings that nothing else explains, each with what it explains.

    `slack` is how many steps a consequence may seem to begin before its cause: a patient rule may
    date its onset a little late.
    """
    present = {finding.code for _, finding in findings}
    placed = [(_place(cause, finding), finding) for cause, finding in findings]
    ordered = sorted(placed, key=lambda entry: _rank(entry, present))
    roots: list[tuple[float, Finding, list[Finding]]] = []
    for cause, finding in ordered:
        for above, root, consequences in roots:
            if _explains(above, root, cause, finding, slack):
                consequences.append(finding)
                break
        else:
            roots.append((cause, finding, []))
    told = [dataclasses.replace(root, consequences=tuple(below)) for _, root, below in roots]
    return sorted(told, key=lambda finding: finding.severity == "info")  # good advice comes last


BY_ITSELF: Final = 1e3
"""Change of the signal over depth from which on no setting could make up for a start."""


def _place(cause: Cause, finding: Finding) -> float:
    """Where a finding stands: a start that is not ill by itself comes after the settings."""
    if ZEROS in finding.evidence:
        return Cause.START + 0.5  # what makes a gradient zero is said by others, if they know
    if cause != Cause.START or finding.code != "bad-init-scale":
        return cause
    for name, evidence in finding.evidence.items():
        limit = BY_ITSELF if name.startswith("change of the signal") else evidence.threshold
        if limit is not None and evidence.value > limit:
            return cause
    return Cause.SETTINGS + 0.5


def _explains(above: float, root: Finding, cause: float, finding: Finding, slack: int) -> bool:
    # Good advice explains nothing: an unused module does not make a loss diverge.
    if root.severity == "info":
        return False
    if cause == Cause.REST:  # reported when nothing else is, whenever that began
        return above < cause
    if finding.code == "non-finite" and above == cause:
        slack = 0  # its step is known, and not dated by patience
    elif root.code in EXAMINED and root.first_step <= EARLY:
        slack = EARLY
    if finding.first_step + slack < root.first_step:
        return False
    if above < cause:
        return True
    return above == cause and finding.code in LEADS_TO.get(root.code, ())


def _rank(entry: tuple[float, Finding], present: set[str]) -> tuple[float, int, int, int, bool]:
    cause, finding = entry
    led = sum(finding.code in codes for code, codes in LEADS_TO.items() if code in present)
    made = finding.code == "non-finite"  # in one step with what may have made it
    return (cause, led, -SEVERITIES.index(finding.severity), finding.first_step, made)
