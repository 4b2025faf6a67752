"""Units of a layer start identical, and stay so.

Cause: all weights of a layer were set to one value, or one unit was drawn and repeated.
Evidence: the rows of a weight are all equal in the first steps, and so are those of its gradient:
nothing will ever tell the units apart. The same of columns, where a layer has its units in them.
Fix: start with random weights.
Silent: for weights that start at zero and whose gradients differ (zero-initialised projections,
the second matrix of an adapter), and for layers with one unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.phrases import some
from nethook.doctor.rule import Cause, Rule

MOST: Final = 512
"""Units of a weight that are compared."""


class Thresholds(NamedTuple):
    """What may be changed."""

    share: float = 0.1  # of the rows that are different


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding, with every weight that is symmetric."""
    symmetric = [parameter for parameter in history.parameters if _is_symmetric(parameter, limit)]
    if not symmetric:
        return
    sites = tuple(parameter.address for parameter in symmetric)
    yield Finding(
        "symmetric-init",
        "error",
        f"the units of {some(sites, 'weight')} start with the same weights and get the same "
        "gradients: they will always compute the same thing.",
        "Start with random weights: torch.nn.init.kaiming_normal_(layer.weight), or "
        "nethook.init.apply_ for the whole model.",
        sites=sites,
        first_step=min(_first_step(history, one) for one in symmetric),
        last_step=history.steps - 1,
        evidence={"weights with equal units": Evidence(len(symmetric), 1)},
    )


def _is_symmetric(parameter: SiteFacts, limit: Thresholds) -> bool:
    if not parameter.fact("with_grad"):
        return False
    rows = int(parameter.fact("rows", 0))
    shape = parameter.fact("shape", []) or []
    columns = int(shape[1]) if len(shape) == 2 else 0
    return _are_equal(parameter, "rows", rows, limit) or _are_equal(
        parameter, "columns", columns, limit
    )


def _are_equal(parameter: SiteFacts, units: str, count: int, limit: Thresholds) -> bool:
    """Whether the rows, or the columns, of a weight and of its gradient are nearly all equal."""
    weights = parameter.fact(f"distinct_{units}", {}) or {}
    gradients = parameter.fact(f"distinct_grad_{units}", {}) or {}
    steps = sorted(set(weights) & set(gradients), key=int)
    few = max(1, int(limit.share * min(count, MOST)))
    return (
        count > 1
        and bool(steps)
        and all(weights[step] <= few and gradients[step] <= few for step in steps)
    )


def _first_step(history: History, parameter: SiteFacts) -> int:
    """The first step at which its rows were compared."""
    steps = [int(step) for step in parameter.fact("distinct_rows", {})]
    return min(steps, default=history.first_step)


RULE = Rule(
    "symmetric-init",
    Cause.START,
    look,
    reads=(
        "parameter.distinct_columns",
        "parameter.distinct_grad_columns",
        "parameter.distinct_grad_rows",
        "parameter.distinct_rows",
        "parameter.rows",
        "parameter.shape",
        "parameter.with_grad",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
