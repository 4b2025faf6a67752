"""Gradients are clipped while they still have the factor of the loss scaler.

Cause: `clip_grad_norm_` stands before `scaler.unscale_(optimizer)`, or that call is missing, so
the limit is compared with gradients that are thousands of times too large.
Evidence: the order of the calls: clippings of gradients that had not been unscaled.
Fix: call `scaler.unscale_(optimizer)` before clipping.
Silent: without a loss scaler, or with one whose factor is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.runs.names import CLIPS, SCALED_CLIPS


class Thresholds(NamedTuple):
    """What may be changed."""

    clips: float = 2


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    scaled = history.loop(SCALED_CLIPS)
    bad = scaled.where(scaled.value > 0)
    clips = history.loop(CLIPS).total
    if bad.total >= limit.clips:
        yield Finding(
            "clipped-before-unscale",
            "error",
            f"{bad.total:.0f} of {clips:.0f} clippings were applied to gradients that still had "
            "the factor of the loss scaler: after unscaling, next to nothing is left of them.",
            "Call scaler.unscale_(optimizer) after scaler.scale(loss).backward() and before "
            "clip_grad_norm_.",
            first_step=int(bad.step[0]),
            last_step=int(bad.step[-1]),
            evidence={"clippings of scaled gradients": Evidence(bad.total, limit.clips)},
        )


RULE = Rule(
    "clipped-before-unscale",
    Cause.LOOP,
    look,
    reads=("series.@loop.clips.mean", "series.@loop.scaled_clips.mean"),
    defaults=Thresholds(),
)
