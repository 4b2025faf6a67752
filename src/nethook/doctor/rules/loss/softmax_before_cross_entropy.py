"""Probabilities are given to a loss that wants logits.

Cause: the model ends in a softmax (or log-softmax, or sigmoid), and the loss applies its own.
Evidence: the chain of autograd nodes from the loss back to the model's output has a second softmax
right behind the loss's own; and every row of predictions sums to 1 within [0, 1].
Fix: return logits from the model.
Silent: for softmax elsewhere (inside attention), and for log-probabilities given to `nll_loss`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, LossFacts
from nethook.doctor.phrases import source_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.records import finding_of_records


class Thresholds(NamedTuple):
    """What may be changed."""

    records: float = 1  # losses that were made so


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    records = history.records("train")
    bad = [record for record in records if _doubled(record)]
    if len(bad) < limit.records or not bad:
        return
    first = bad[0]
    twice = _doubled(first)
    own = "softmax" if first.fact("kind") == "cross_entropy" else "sigmoid"
    where = source_line(first.fact("source"))
    yield finding_of_records(
        "softmax-before-cross-entropy",
        "error",
        f"the loss{where} takes logits and applies its own {own}, and the "
        f"model's output has gone through {twice} already: gradients are faint and the loss cannot "
        "come near zero.",
        f"Leave {twice.replace('a ', 'the ')} out of the model's forward while training; "
        "apply it for predictions.",
        bad,
        {"losses on probabilities": Evidence(len(bad), limit.records)},
    )


def _doubled(record: LossFacts) -> str:
    """What was applied before the loss's own softmax or sigmoid; empty where nothing was."""
    kind = record.fact("kind")
    # What the model returns may be a view of what it computed last.
    chain = [str(node) for node in (*record.fact("chain", []), *record.fact("inside", []))]
    if kind == "cross_entropy":
        own = next((index for index, node in enumerate(chain) if node == "LogSoftmax"), None)
        behind = chain[own + 1 :] if own is not None else []
        behind = [node for node in behind if node not in _MOVES]
        if behind and behind[0] in ("Softmax", "LogSoftmax", "Sigmoid"):
            if behind[0] == "LogSoftmax":
                return ""  # the same numbers twice: of no use, and no harm
            return "a softmax" if behind[0] == "Softmax" else "a sigmoid"
        return "a softmax" if not behind and _are_probabilities(record) else ""
    if kind == "bce_with_logits":
        behind = [node for node in chain if node not in _MOVES and node not in _OWN]
        return "a sigmoid" if behind and behind[0] == "Sigmoid" else ""
    return ""


def _are_probabilities(record: LossFacts) -> bool:
    sums = record.fact("row_sums")
    prediction = record.fact("prediction") or {}
    low, high = prediction.get("min"), prediction.get("max")
    if not sums or low is None or high is None or low == high:
        return False
    return bool(abs(sums[0] - 1) < 1e-3 and abs(sums[1] - 1) < 1e-3 and low >= 0 and high <= 1)


_MOVES = ("View", "Reshape", "Permute", "Transpose", "T", "Squeeze", "Unsqueeze", "ToCopy", "Slice")
_OWN = ("BinaryCrossEntropyWithLogits", "Mean", "Sum", "Div", "Mul")

RULE = Rule(
    "softmax-before-cross-entropy",
    Cause.LOSS,
    look,
    reads=(
        "loss.chain",
        "loss.inside",
        "loss.kind",
        "loss.prediction",
        "loss.row_sums",
        "loss.source",
    ),
    defaults=Thresholds(),
)
