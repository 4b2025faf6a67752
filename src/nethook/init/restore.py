"""One forward that leaves nothing behind: buffers, random state, modes and fast paths come back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from nethook.hooks.shadow import is_shadow

_SEED = 0  # the same for every run, so that dropout hides the same elements in a second one


@contextmanager
def as_it_was(model: nn.Module) -> Iterator[None]:
    """Runs a block with one fixed seed, and puts back what a forward may have changed.

    The training flag of each module stays what it is: normalisation over the batch is part of what
    a network does at its start. Running statistics are put back.
    """
    kept = [(buffer, buffer.detach().clone()) for buffer in model.buffers() if _is_readable(buffer)]
    modes = [(module, module.training) for module in model.modules()]
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.is_cuda})
    # A fused encoder layer would hide what feeds what.
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(_SEED)
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        for module, training in modes:
            module.training = training
        with torch.no_grad():
            for buffer, old in kept:
                # One that was not written keeps its version.
                if not _same(buffer, old):
                    buffer.copy_(old)


def _is_readable(buffer: torch.Tensor) -> bool:
    unset = isinstance(buffer, UninitializedTensorMixin) or buffer.is_meta
    return not (unset or is_shadow(buffer))


def _same(buffer: torch.Tensor, old: torch.Tensor) -> bool:
    if buffer.shape != old.shape or buffer.dtype != old.dtype:
        return False
    return torch.equal(
        buffer.nan_to_num() if buffer.is_floating_point() else buffer,
        old.nan_to_num() if old.is_floating_point() else old,
    )
