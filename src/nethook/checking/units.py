"""Units of rectifiers that are silent for every sample of a batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from nethook.checking.batch import Batch
from nethook.errors import NethookError
from nethook.tracing.scope import trace

FEWEST = 8  # samples: with fewer a unit may be silent by chance


def silent_units(model: nn.Module, batch: Batch) -> dict[str, tuple[int, int]]:
    """Address of each rectifier: units that are silent, and units in all. The model is a copy."""
    found: dict[str, tuple[int, int]] = {}
    samples = batch.samples
    if samples < FEWEST:
        return found
    model.train()
    modules = [m for m in model.modules() if isinstance(m, nn.ReLU | nn.ReLU6)]
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
            inside = address.partition("/")[0] in found
            if isinstance(counts, tuple) and not inside:
                found[address] = counts
    return found


def _counter(samples: int) -> Callable[[torch.Tensor], tuple[int, int] | None]:
    def count(value: torch.Tensor) -> tuple[int, int] | None:
        if value.dim() < 2 or value.shape[0] != samples:
            return None
        # (N, C, …): a channel is a unit; (N, …, C) of two or three dimensions: the last one is.
        units = 1 if value.dim() >= 4 else value.dim() - 1
        active = (value != 0).movedim(units, 0).flatten(1).any(1)
        return int((~active).sum()), int(active.numel())

    return count
