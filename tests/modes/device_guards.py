"""What nethook does for accelerators, switched off."""

from __future__ import annotations

from typing import Any

import torch

from tests.modes.steps import patched


def waits_for_numbers() -> Any:
    """Numbers that would come later are waited for."""

    def put(self: Any, vector: torch.Tensor, done: Any) -> None:
        done(vector.tolist())

    return patched("nethook.stats.transfers.Transfers.put", put)


def no_such_device() -> Any:
    """Everything is measured as if it lay on the CPU."""
    place = "nethook.watching.measuring.parameter_numbers.one_by_one._away"
    return patched(place, lambda journal, parameters: [])
