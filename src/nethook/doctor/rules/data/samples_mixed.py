"""What the model says of a sample depends on the other samples in its batch.

Cause: a softmax or mean over dimension 0, attention or an RNN that takes the batch for time
(`batch_first`), `view` or `reshape` where `permute` was meant.
Evidence: on a copy, in evaluation mode, the other samples were replaced by one real sample, and the
output of a sample that had stayed moved. A data loader, or evaluations in batches of another size,
show that rows are samples.
Fix: find the operation that runs over dimension 0.
Silent: where rows are connected on purpose: graphs, contrastive losses, bags, lists and sets of
changing size, batch norm. A set of fixed size looks exactly like the bug: where nothing shows that
rows are samples, it is a question (`info`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding, Severity
from nethook.doctor.history import Examined, History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, number, text
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import BATCH_SIZE

EXAMINED = "samples are independent"


class Thresholds(NamedTuple):
    """What may be changed."""

    others: float = 1e-3  # how far others move a sample, by how far itself does


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED)
    if result is None or not number(result, "others", 0.0) > limit.others:
        return
    shown = text(result, "shown") if result.outcome == "found" else ""
    by_choice = result.fact("smooth") is False
    if not shown and not by_choice:
        shown = _sizes(history, result)
    severity: Severity = "error" if result.outcome == "found" else "warning" if shown else "info"
    others, samples = number(result, "others"), number(result, "samples", 0)
    operation = text(result, "operation")
    said = (
        "what the model says of a sample depends on the others in its batch: with those replaced, "
        f"the output of one of {samples:.0f} samples moved {others:.2g} times as far as with "
        "itself replaced"
    )
    yield finding_of(
        history,
        result,
        "samples-mixed",
        f"{said}{f', by {operation}' if operation else ''}"
        f"{f' ({shown}).' if shown else f'. Is that meant? {_sentence(result.reason)}'}",
        "Look for a softmax or mean over dimension 0, nn.MultiheadAttention or an RNN without "
        "batch_first=True, and a view or reshape where permute or transpose was meant.",
        {"effect of others": Evidence(others, limit.others)},
        severity,
    )


def _sizes(history: History, result: Examined) -> str:
    """Batches of another size now and then: nothing belongs to a set of fixed size there."""
    trained = history.batch(BATCH_SIZE)
    if not len(trained):
        return ""
    usual = median(trained.value)
    same = float((trained.value == usual).mean())
    if usual != number(result, "samples", 0) or same < 0.8 or trained.value.max() > usual:
        return ""
    if same < 1:
        last = float(trained.value.min())
        return (
            f"rows are samples: batches of {usual:.0f}, and now and then a last one of {last:.0f}"
        )
    sizes = history.info("evaluation_sizes", {})
    evaluated = sizes.get(result.model, ()) if isinstance(sizes, dict) else ()
    other = [size for size in evaluated if isinstance(size, int) and size != usual]
    if not other:
        return ""
    return f"rows are samples: batches of {usual:.0f} in training, of {other[0]} in evaluation"


def _sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}." if reason else ""


RULE = Rule(
    "samples-mixed",
    Cause.DATA,
    look,
    reads=(
        "examined.samples are independent",
        "examined.samples are independent.lines",
        "examined.samples are independent.operation",
        "examined.samples are independent.others",
        "examined.samples are independent.samples",
        "examined.samples are independent.shown",
        "examined.samples are independent.smooth",
        "info.evaluation_sizes",
        "series.@batch.size.mean",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
