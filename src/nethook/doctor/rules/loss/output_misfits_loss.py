"""The model's output is not what the loss takes it for.

Cause: probabilities or scores given to a loss of log-probabilities (`NLLLoss`, `KLDivLoss`,
`CTCLoss`), or a rectifier, tanh or softmax after the last layer before a loss that takes any number
as a logit: then some answers cannot be given.
Evidence: values above zero where logarithms of probabilities are taken, which no probability has;
or the operation right behind the loss, in every record.
Fix: the output that the loss is for: logits, or log-probabilities.
Silent: for log-softmax twice, which is of no use and no harm; for logits that are scaled after a
bounded function (soft caps); and for what `softmax-before-cross-entropy` reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding, Severity
from nethook.doctor.history import History, LossFacts
from nethook.doctor.phrases import source_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.records import finding_of_records


class Thresholds(NamedTuple):
    """What may be changed."""

    records: float = 2  # losses that were made so
    above: float = 1e-4  # zero, that a logarithm of a probability is


class _Misfit(NamedTuple):
    message: str
    fix: str
    severity: Severity
    evidence: dict[str, Evidence]


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    records = history.records("train")
    told = [(record, misfit) for record in records if (misfit := _misfit(record, limit))]
    if not told or len(told) < min(limit.records, len(records)) or len(told) < 0.5 * len(records):
        return
    first, misfit = told[0]
    yield finding_of_records(
        "output-misfits-loss",
        misfit.severity,
        f"the loss{source_line(first.fact('source'))} {misfit.message}",
        misfit.fix,
        [record for record, _ in told],
        misfit.evidence | {"losses made so": Evidence(len(told), limit.records)},
    )


def _misfit(record: LossFacts, limit: Thresholds) -> _Misfit | None:
    kind = str(record.fact("kind"))
    if kind in _OF_LOGARITHMS:
        return _no_logarithms(record, kind, limit)
    if kind in _OF_LOGITS:
        return _no_logits(record, kind)
    if kind == "bce":
        return _always_one(record)
    return None


def _no_logarithms(record: LossFacts, kind: str, limit: Thresholds) -> _Misfit | None:
    """A logarithm of a probability is never above zero."""
    prediction: dict[str, Any] = record.fact("prediction") or {}
    low, high = prediction.get("min"), prediction.get("max")
    if low is None or high is None or not high > limit.above:
        return None
    if kind == "kl_div" and _last(record) == "Softmax" and not (record.fact("value") or 0) < 0:
        return None  # a sum that looks alike: what kl_div makes of probabilities is below zero
    sums = record.fact("row_sums") or []
    within = low >= 0 and high <= 1 + 1e-4
    adds_up = len(sums) == 2 and abs(sums[0] - 1) < 1e-2 and abs(sums[1] - 1) < 1e-2
    given = "probabilities" if within and (adds_up or _last(record) in _PROBABILITIES) else "scores"
    value = record.fact("value")
    below = " and can fall below zero without end" if given == "scores" else ""
    negative = (
        f" (it is {value:.3g}, and a right one is never below zero)" if (value or 0) < 0 else ""
    )
    return _Misfit(
        f"takes logarithms of probabilities, and gets {given} between {low:.3g} and "
        f"{high:.3g}{negative}: it does not measure how likely the targets are{below}.",
        "Give it F.log_softmax(logits, dim=1), or give logits to CrossEntropyLoss."
        if kind == "nll"
        else "Give it F.log_softmax(logits, dim=-1).",
        "error",
        {"largest logarithm": Evidence(float(high), limit.above)},
    )


def _no_logits(record: LossFacts, kind: str) -> _Misfit | None:
    """Any number is a logit; behind a rectifier or a bounded function not every number comes."""
    last = _last(record)
    why = _REACH.get(last, {}).get(kind)
    if why is None:
        return None
    name = last.lower()
    return _Misfit(
        f"takes logits, which may be any number, and the model's output has gone through {name}: "
        f"{why}.",
        f"Leave the {name} after the last layer out.",
        "warning",
        {},
    )


def _always_one(record: LossFacts) -> _Misfit | None:
    """The softmax of a single score."""
    shape = (record.fact("prediction") or {}).get("shape") or []
    if _last(record) != "Softmax" or len(shape) < 2 or shape[-1] != 1:
        return None
    return _Misfit(
        "takes a probability, and the model's output is the softmax of a single score: always 1.",
        "Use a sigmoid, or two outputs with CrossEntropyLoss.",
        "error",
        {},
    )


def _last(record: LossFacts) -> str:
    """The operation right behind the loss and its own softmax; what only moves is passed over."""
    kind = record.fact("kind")
    chain = [str(node) for node in (*record.fact("chain", []), *record.fact("inside", []))]
    chain = [node for node in chain if node not in _MOVES]
    if chain and chain[0] in _LOSS_NODES:
        chain = chain[1:]
    if kind == "cross_entropy" and chain and chain[0] == "LogSoftmax":
        chain = chain[1:]
    return chain[0] if chain else ""


_OF_LOGARITHMS: Final = ("nll", "ctc", "kl_div")
_OF_LOGITS: Final = ("cross_entropy", "bce_with_logits")
_PROBABILITIES: Final = ("Softmax", "Sigmoid")
_LOSS_NODES: Final = ("NllLoss", "NllLoss2D", "BinaryCrossEntropy", "BinaryCrossEntropyWithLogits",
                      "CtcLoss", "CudnnCtcLoss")  # fmt: skip
_MOVES: Final = ("View", "Reshape", "Permute", "Transpose", "T", "Squeeze", "Unsqueeze", "ToCopy",
                 "Slice", "Select", "UnsafeView", "ReshapeAlias", "Clone", "Alias")  # fmt: skip
_POSITIVE: Final = {
    "cross_entropy": "no class can be ruled out by a logit below zero, and classes whose logit is "
    "zero get no gradient",
    "bce_with_logits": "no probability can be below a half",
}
_BOUNDED: Final = {
    "cross_entropy": "logits differ by 2 at most, so that no answer can be sure",
    "bce_with_logits": "probabilities stay between 0.27 and 0.73",
}
_REACH: Final[dict[str, dict[str, str]]] = {
    "Relu": _POSITIVE,
    "Softplus": _POSITIVE,
    "Tanh": _BOUNDED,
    "Softmax": {"bce_with_logits": "probabilities of its own lie between 0.5 and 0.73"},
    "LogSoftmax": {"bce_with_logits": "no probability can be above a half"},
}

RULE = Rule(
    "output-misfits-loss",
    Cause.LOSS,
    look,
    reads=(
        "loss.chain",
        "loss.inside",
        "loss.kind",
        "loss.prediction",
        "loss.row_sums",
        "loss.source",
        "loss.value",
    ),
    defaults=Thresholds(),
)
