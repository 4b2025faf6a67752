"""Parameters that FSDP2 (`fully_shard`) keeps in shards.

It puts gathered tensors in the place of the shards while a layer runs, adds up gradients by itself
when the backward pass has ended, and calls no hook on the parameters meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from nethook.torch_private import fsdp_groups_of, gathered

NO_HOOKS = (
    "FSDP2 (fully_shard) computes the gradient of a shard by itself when the backward pass has "
    "ended, and calls no hook on it: read `parameter.grad` after backward(), which is this rank's "
    "shard"
)


def groups_of(root: nn.Module) -> Iterator[Any]:
    """The groups of parameters that FSDP2 gathers together."""
    fsdp: Any = getattr(sys.modules.get("torch.distributed.fsdp"), "FSDPModule", None)
    if fsdp is None:
        return
    for module in root.modules():
        if isinstance(module, fsdp):
            yield from fsdp_groups_of(module)


def shards_of(root: nn.Module) -> dict[int, torch.Tensor]:
    """The shard of each parameter, by the id of the shard and of the gathered tensor."""
    shards: dict[int, torch.Tensor] = {}
    for group in groups_of(root):
        for parameter in group.fsdp_params:
            shards[id(parameter.sharded_param)] = parameter.sharded_param
            whole = gathered(parameter)
            if whole is not None:
                shards[id(whole)] = parameter.sharded_param
    return shards
