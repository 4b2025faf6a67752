"""Most of what the loss is taken of is padding.

Cause: sequences are padded to one length, and nothing tells the loss to leave the padding out; or
its mask is the wrong way round, and leaves out everything else.
Evidence: at most of the positions that are scored the input repeats the value that its rows end in,
and the target is one class there; in every record. Of frames of numbers: most of them are one
number up to the end of their row, rows end at different places, and no other frame is like that. Of
a mask: on a copy, the loss depends on predictions only where the target is one and the same value,
and several others are left out.
Fix: `ignore_index`, or a mask.
Silent: where a class is merely frequent (the inputs under it differ), where padding is left out, or
weighed by class or mask, and below warning where the rest is predicted as well as the padding. Of
frames it is a question: some models are to learn where a sequence ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Examined, History, LossFacts
from nethook.doctor.phrases import file_and_line, source_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, number
from nethook.doctor.signals.quantiles import median

EXAMINED = "the loss scores what differs"
_OF_NUMBERS: Final = ("mse", "l1", "smooth_l1", "huber")


class Thresholds(NamedTuple):
    """What may be changed."""

    share: float = 0.5  # of the targets that count
    records: float = 4
    accuracy: float = 0.98  # of the rest, by that of padding: from here on it does no harm


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    inverted = first(history, EXAMINED)
    if inverted is not None and inverted.outcome == "found":
        yield _inverted(history, inverted)
        return
    records = [record for record in history.records("train") if record.fact("padding")]
    shares = [_number(record, "share") for record in records]
    if len(records) < limit.records or min(shares) < 0.5 * limit.share:
        return
    share = median(shares)
    if share < limit.share or any(_weighed(record) for record in records):
        return
    values = {_number(record, "target") for record in records}
    if len(values) != 1:
        return
    late = records[-max(3, len(records) // 4) :]
    right, rest = [
        median([_number(record, name) for record in late])
        for name in ("accuracy", "accuracy_elsewhere")
    ]
    began = records[0]
    harmless = rest >= limit.accuracy * right
    known = right == right and rest == rest  # not NaN
    frames = not known and began.fact("kind") in _OF_NUMBERS
    told = (
        f", {right:.0%} of which is predicted rightly, and {rest:.0%} of the rest" if known else ""
    )
    evidence = {"share of padding": Evidence(share, limit.share)}
    if known:
        evidence["accuracy elsewhere, by that of padding"] = Evidence(
            rest / max(right, 1e-12), limit.accuracy
        )
    yield Finding(
        "padding-dominates",
        "info" if frames or (known and harmless) else "warning",
        f"{share:.0%} of the targets that the loss{source_line(began.fact('source'))} averages "
        f"over are {values.pop():g} "
        + (
            "after the end of their sequence: the loss is mostly about padding. Is that meant?"
            if frames
            else f"at positions where the inputs are padded{told}: the loss is mostly about "
            "padding."
        ),
        "Leave padding out: a mask on the losses of positions, loss = mse(out[real], target[real])."
        if frames
        else "Leave padding out: CrossEntropyLoss(ignore_index=...), with targets of padding set "
        "to that number, or a mask on the losses of positions.",
        first_step=began.step,
        last_step=records[-1].step,
        evidence=evidence,
        lines=file_and_line(began.fact("source")),
    )


def _inverted(history: History, result: Examined) -> Finding:
    value, share = number(result, "value", 0), number(result, "share", 0)
    left_out = number(result, "left_out", 0)
    return finding_of(
        history,
        result,
        "padding-dominates",
        f"the loss depends on the predictions at {share:.0%} of the places, where every target is "
        f"{value:g}, and on none at those with {left_out:.0f} other targets: its mask seems to be "
        "the wrong way round.",
        "Turn the mask around: it is to be true, or 1, where there is something to learn.",
        {
            "different targets that count": Evidence(number(result, "values", 1), 1),
            "different targets that are left out": Evidence(left_out),
        },
    )


def _number(record: LossFacts, name: str) -> float:
    value = (record.fact("padding") or {}).get(name)
    return float("nan") if value is None else float(value)


def _weighed(record: LossFacts) -> bool:
    options = record.fact("options") or {}
    return bool(options.get("weight") or options.get("pos_weight"))


RULE = Rule(
    "padding-dominates",
    Cause.LOSS,
    look,
    reads=(
        "examined.the loss scores what differs",
        "examined.the loss scores what differs.left_out",
        "examined.the loss scores what differs.lines",
        "examined.the loss scores what differs.share",
        "examined.the loss scores what differs.value",
        "examined.the loss scores what differs.values",
        "loss.kind",
        "loss.options",
        "loss.padding",
        "loss.source",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
