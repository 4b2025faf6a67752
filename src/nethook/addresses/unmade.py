"""Parameters that lazy modules (`nn.LazyLinear`) have yet to make: they have no shape so far."""

from __future__ import annotations

from torch import nn
from torch.nn.parameter import is_lazy


def first_unmade(model: nn.Module) -> str | None:
    """The address of the first parameter that the first forward will make; None: there is none."""
    return next((name for name, each in model.named_parameters() if is_lazy(each)), None)
