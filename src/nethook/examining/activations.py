"""How much memory the forward of a step holds until its backward pass: read from its graph.

Nothing is run or unpacked: what a hook of the script's keeps elsewhere (a checkpoint, a copy on the
CPU) does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import torch

from nethook.torch_private import saved_names_of, saved_without_hooks, storage_id

MOST_NODES: Final = 20_000
"""Nodes that are looked at; a larger graph is taken to go on as it has begun."""


def bytes_saved(roots: Sequence[torch.Tensor], leave_out: set[int]) -> int:
    """Bytes that a graph keeps for its backward pass.

    Arguments:
        roots: what `backward` is called for.
        leave_out: ids of memory (`storage_id`) that does not count: that of parameters.
    """
    waiting: list[Any] = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen = set(waiting)
    counted = set(leave_out)
    total = looked = 0
    while waiting and looked < MOST_NODES:
        node = waiting.pop()
        looked += 1
        kind: Any = type(node)
        for name in saved_names_of(kind):
            with suppress(RuntimeError):  # what was written to since cannot be had
                total += _new_bytes(saved_without_hooks(node, name), counted)
        for into, _ in node.next_functions:
            if into is not None and into not in seen:
                seen.add(into)
                waiting.append(into)
    if waiting:
        total = total * (looked + len(waiting)) // looked
    return total


def _new_bytes(value: Any, counted: set[int]) -> int:
    held = value if isinstance(value, list | tuple) else (value,)
    total = 0
    for tensor in held:
        if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided:
            memory = storage_id(tensor.untyped_storage())
            if memory not in counted:
                counted.add(memory)
                total += tensor.untyped_storage().nbytes()
    return total
