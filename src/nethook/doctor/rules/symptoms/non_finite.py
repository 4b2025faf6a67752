"""A NaN or an infinity.

Cause: the logarithm of zero, a division of zero by zero, the overflow of a narrow type, the slope
of a square root at zero, or whatever the flight recorder has pinned.
Evidence: the first operation whose inputs were finite and whose output was not; or a loss that is
not finite and stays so.
Fix: at the operation that is named.
Silent: for steps that a loss scaler left out, infinite masks, and values that the user's code
filled in: none of these is recorded as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.runs.names import NON_FINITE


class Thresholds(NamedTuple):
    """What may be changed."""

    share: float = 0.5  # of the losses after the first that is not finite


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    for event in history.events(NON_FINITE)[:1]:
        site = event.address or str(event.data.get("site") or "")
        reason = str(event.data.get("reason") or event.message).rstrip(".")
        replayed = event.data.get("replayed")
        made = replayed if isinstance(replayed, dict) else {}
        operation = str(made.get("operation") or "")
        if operation:  # it was found when it happened, on a copy
            reason = f"`{operation}` made it. {made.get('reason') or reason}".rstrip(".")
        source = str(made.get("source") or "").partition(" in ")[0]
        yield Finding(
            "non-finite",
            "error",
            f"the first NaN or infinity came at step {event.step}{_ranks(history, event.step)}"
            f"{f' from `{site}`' if site else ''}: {reason}.",
            str(event.data.get("fix") or _FIX),
            sites=(site,) if site else (),
            first_step=event.step,
            last_step=history.steps - 1,
            evidence={"step": Evidence(event.step)},
            lines=(source,) if source else (),
        )
        return
    for name, curve in history.named_losses():
        bad = np.flatnonzero(~np.isfinite(curve.value))
        if len(bad) and float((~np.isfinite(curve.value[bad[0] :])).mean()) >= limit.share:
            yield Finding(
                "non-finite",
                "error",
                f"the loss {name} is not finite from step {int(curve.step[bad[0]])} on.",
                _FIX,
                first_step=int(curve.step[bad[0]]),
                last_step=history.steps - 1,
                evidence={"losses that are not finite": Evidence(len(bad), 1)},
            )
            return


def _ranks(history: History, step: int) -> str:
    """Which ranks met it in that step, where there are several."""
    size = history.info("world_size")
    if not isinstance(size, int) or size < 2:
        return ""
    ranks = sorted({event.rank for event in history.events(NON_FINITE) if event.step == step})
    if len(ranks) == 1:
        return f" on rank {ranks[0]}"
    return f" on {len(ranks)} ranks, the first of them {ranks[0]},"


_FIX = (
    "Look at what was computed there: add a small number inside logarithms, square roots and "
    "denominators, and clip gradients; nethook.replay names the operation."
)


RULE = Rule(
    "non-finite",
    Cause.SYMPTOM,
    look,
    reads=(
        "event.non-finite",
        "info.world_size",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
