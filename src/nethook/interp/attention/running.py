"""One forward of a model under the eyes of a consumer of operations; all is left as it was."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import as_inputs
from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.compile.eager import run_eagerly_where_compiled
from nethook.hooks.hook import Owner
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.hooks.ops.consumer import OpConsumer
from nethook.hooks.ops.watch import watch_ops
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged


def run_once(
    model: nn.Module, inputs: Any, consumer: OpConsumer, who: str, *, grad: bool = False
) -> Any:
    """What the model returns in evaluation; `consumer` is told of every operation."""
    given = as_inputs(inputs)
    tree = Tree(model)
    with (
        unchanged(model, given, evaluation=True),
        layer_by_layer(),
        torch.set_grad_enabled(grad),
        Attachment(Owner(who)) as hooks,
    ):
        run_eagerly_where_compiled(tree, hooks)
        watch_ops(tree, hooks, consumer)
        return own_inputs(given).call(tree.root)
