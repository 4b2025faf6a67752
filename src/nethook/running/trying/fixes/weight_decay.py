"""A weaker weight decay in every step.

Cannot be applied where the decay is not a setting of the optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nethook.hooks.attachment import Attachment
from nethook.running.trying.change import Change
from nethook.running.trying.fixes.settings import scaled_in_steps, setting_of
from nethook.runs.reading.run import Run
from nethook.text.numbers import ascii_number as number

CODES: Final = ("weight-decay-too-strong",)


def propose(finding: Mapping[str, Any], run: Run) -> Change | None:
    """A hundredth of the decay, and at most 0.01."""
    decay = setting_of(run, "weight_decay")
    if decay is None or decay <= 0:
        return None
    new = min(decay / 100, 0.01)
    said = f"weight decay {number(decay)} → {number(new)}"
    return Change("weight_decay", str(finding.get("code")), said, {"most": new})


def apply(change: Change, hooks: Attachment, done: Callable[[], None]) -> None:
    """From now on."""
    most = change.numbers["most"]
    scaled_in_steps(hooks, done, "weight_decay", lambda decay: min(decay, most))
