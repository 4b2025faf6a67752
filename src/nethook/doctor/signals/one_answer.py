"""Whether a network came to one answer for all inputs, while its targets are of several classes."""

from __future__ import annotations

from typing import Final

import numpy as np

from nethook.doctor.history import Floats, History, LossFacts

ONE_ANSWER_READS: Final = ("loss.argmax_counts", "loss.class_counts")
"""The fields that `one_answer` reads."""

_RECORDS: Final = 4
_SAME: Final = 0.97
"""Share of the answers that are the same."""
_SPREAD: Final = 0.7
"""Share of the most frequent target, above which an answer for all is no wonder."""


def one_answer(history: History) -> bool:
    """Of the last records, each."""
    known = [
        (wanted, given)
        for record in history.records("train")
        if (wanted := _counts(record, "class_counts")) is not None
        and (given := _counts(record, "argmax_counts")) is not None
    ]
    late = known[-_RECORDS:]
    return len(late) == _RECORDS and all(
        given.max() >= _SAME * given.sum() and wanted.max() <= _SPREAD * wanted.sum()
        for wanted, given in late
    )


def _counts(record: LossFacts, name: str) -> Floats | None:
    counts = record.fact(name)
    if not isinstance(counts, list) or not sum(counts):
        return None
    return np.asarray(counts, np.float64)
