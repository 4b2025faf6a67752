"""Parameters that lazy modules (`nn.LazyLinear`) have yet to make: they have no shape so far."""

from __future__ import annotations

from torch import nn
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]


def first_unmade(model: nn.Module) -> str | None:
    """The address of the first parameter that the first forward will make; None: there is none."""
    for name, parameter in model.named_parameters():
        if isinstance(parameter, UninitializedTensorMixin):
            return name
    return None
