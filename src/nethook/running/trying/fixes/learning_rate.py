"""Another learning rate: every step is taken at the script's rate times a factor.

The script, and its schedulers, see their own rate before and after each step.
Cannot be applied where no optimizer steps: weights that are updated by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nethook.hooks.attachment import Attachment
from nethook.running.trying.change import Change
from nethook.running.trying.fixes.settings import (
    evidence,
    first_update_of,
    rate_of,
    scaled_in_steps,
)
from nethook.runs.reading.run import Run
from nethook.text.numbers import ascii_number as number

CODES: Final = ("learning-rate-too-high", "learning-rate-too-low", "diverged", "oscillating-loss")

_USUAL: Final = 0.003
"""Update by weights that a rate which is too high is brought down to; 0.001 for one too low."""
_LOWEST: Final = 1e-4
_HIGHEST: Final = 1e6


def propose(finding: Mapping[str, Any], run: Run) -> Change | None:
    """A rate at which a step changes the weights by a usual share of their size."""
    ratio = evidence(finding, "update by weights")
    if finding.get("code") == "learning-rate-too-low":
        factor = min(0.001 / ratio, _HIGHEST) if ratio else 10.0
    else:
        # Once a run has diverged its updates are those of gradients that have, too: what the rate
        # itself did is seen in the first steps.
        ratios = [value for value in (ratio, first_update_of(run)) if value]
        factor = max(min(_USUAL / min(ratios), 0.5), _LOWEST) if ratios else 0.1
    rate = rate_of(run)
    if rate is None:
        return None
    new = float(f"{rate * factor:.1g}")
    said = f"learning rate {number(rate)} → {number(new)}"
    return Change("learning_rate", str(finding.get("code")), said, {"factor": new / rate})


def apply(change: Change, hooks: Attachment, done: Callable[[], None]) -> None:
    """From now on."""
    factor = change.numbers["factor"]
    scaled_in_steps(hooks, done, "lr", lambda rate: rate * factor)
