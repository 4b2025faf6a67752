"""Units of rectifiers that are dead over a batch; `nethook.kinds.modules` says what that is."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from nethook.errors import NethookError
from nethook.examining.checkup.batch import Batch
from nethook.kinds.modules import is_rectifier, unit_dim
from nethook.stats.fields import INDEX
from nethook.stats.summary import summarise
from nethook.tracing.scope import trace

FEWEST = 8  # samples: with fewer a unit may be dead by chance


def dead_units(model: nn.Module, batch: Batch) -> dict[str, tuple[int, int]]:
    """Address of each rectifier: units that are dead, and units in all. The model is a copy."""
    counts_by_address: dict[str, tuple[int, int]] = {}
    samples = batch.samples
    if samples < FEWEST:
        return counts_by_address
    model.train()
    modules = [module for module in model.modules() if is_rectifier(module)]
    for patterns in ([*modules], ["**/relu"]):
        if not patterns:
            continue
        try:
            taken = trace(model, *patterns, transform=_counter(samples), calls="last")
            with taken as tape, torch.no_grad():
                batch.inputs.call(model)
        except NethookError:  # no such operation
            continue
        for address, record in tape.items():
            counts = record.last.output if record.calls else None
            inside = address.partition("/")[0] in counts_by_address
            if isinstance(counts, tuple) and not inside:
                counts_by_address[address] = counts
    return counts_by_address


def _counter(samples: int) -> Callable[[torch.Tensor], tuple[int, int] | None]:
    def count(value: torch.Tensor) -> tuple[int, int] | None:
        if value.dim() < 2 or value.shape[0] != samples:
            return None
        # A rectifier has no units of its own: those of the shape.
        try:
            seen = summarise(value, unit_dim=unit_dim(None, value.dim()), histogram=False)
        except NethookError:  # of a kind that is not summarised
            return None
        return seen.units - int(seen.row[INDEX["active"]]), seen.units

    return count
