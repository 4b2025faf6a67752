"""Whether a network was trained before this run: then nobody should start it anew."""

from __future__ import annotations

from typing import Final

from nethook.doctor.history import History
from nethook.doctor.signals.progress import PROGRESS_READS, progress

EARLIER_READS: Final = (*PROGRESS_READS, "info.loaded")
"""The fields that `was_trained_before` reads."""

TRAINED: Final = 0.5
"""First losses, by what the best constant answer would score."""


def was_trained_before(history: History) -> bool:
    """Whether weights were loaded (`load_state_dict`, `from_pretrained`), or begin far too well."""
    if history.info("loaded"):
        return True
    went = progress(history)
    return went is not None and went.constant is not None and went.early < TRAINED * went.constant
