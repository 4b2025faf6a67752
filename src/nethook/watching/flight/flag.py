"""What the flight recorder is told where something is not finite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn


@dataclass(frozen=True, slots=True)
class Flag:
    """NaN or infinities were seen.

    `quantity` is one of `outputs`, `grads`, `param_grads`, `params`, `loss`; `inputs` and `value`
    are there while the call is under way, and None where the flag was read later.
    """

    address: str
    quantity: str
    step: int
    phase: str
    module: nn.Module | None = None
    inputs: Any = None
    value: Any = None
