"""Over how many ranks gradients are averaged, which each rank computes from its own samples.

DDP and FSDP2 train on the mean of the ranks' losses. The gradient of that with respect to an output
is what the rank computes, by the number of ranks: only then do the gradients of all ranks together
equal those of one process with all samples.
"""

from __future__ import annotations

import sys
from typing import Any

from torch import nn

from nethook.hooks.layouts.fsdp import groups_of
from nethook.torch_private import ddp_at_work


class Averaging:
    """Asks the wrappers of a model, which know; nothing is asked of other ranks."""

    def __init__(self) -> None:
        self._sharded: dict[int, int] = {}  # id of a model -> ranks that FSDP2 averages over

    def over(self, model: nn.Module) -> int:
        """The number of ranks; asked while the model is called."""
        parallel: Any = getattr(
            sys.modules.get("torch.nn.parallel.distributed"), "DistributedDataParallel", None
        )
        active = None if parallel is None else ddp_at_work(parallel)
        if active is not None:
            return int(active.process_group.size())
        ranks = self._sharded.get(id(model))
        if ranks is None:
            ranks = self._sharded[id(model)] = _sharded_over(model)
        return ranks


def _sharded_over(model: nn.Module) -> int:
    for group in groups_of(model):
        return int(group.mesh_info.mesh.size())
    return 1
