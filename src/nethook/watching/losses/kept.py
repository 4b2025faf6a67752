"""What a model was given and returned, from its call to the backward pass of a sampled step.

Autograd keeps what it needs for gradients, and no more. The target of a loss that was written by
hand is known only where the prediction is; and which targets are padding, only where the inputs
are. Scripts hold both until the backward pass as a rule, so that keeping them costs no memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import torch

from nethook.addresses.nested import tensors
from nethook.torch_private import version_of
from nethook.watching.losses.graph import Node, name_of, option, shape_of, signed

MOST: Final = 8
"""Outputs, and inputs, that are kept."""

_IN_ORDER: Final = frozenset(
    {"View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Alias", "Clone", "ToCopy"}
)
"""Nodes that leave the order of elements as it is."""


_PLACE: Final = "nethook.kept"
"""The key in `node.metadata` of a node that has made an output: which of those that are kept."""


class Kept:
    """Tensors of the step that is under way; no graph is kept with them."""

    __slots__ = ("_outputs", "_turn", "inputs")

    def __init__(self) -> None:
        self._outputs: list[tuple[torch.Tensor, int]] = []
        self._turn = 0  # of how many steps were kept: nodes of an earlier one are not known
        self.inputs: list[torch.Tensor] = []

    def given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A model is called."""
        for _, tensor in tensors((args, dict(kwargs))):
            if len(self.inputs) < MOST and type(tensor) is torch.Tensor:
                self.inputs.append(tensor.detach())

    def returned(self, tensor: torch.Tensor) -> None:
        """A model has returned a tensor with a graph."""
        node: Node = tensor.grad_fn
        plain = type(tensor) is torch.Tensor and not tensor.is_inference()
        if node is not None and plain and len(self._outputs) < MOST:
            node.metadata[_PLACE] = (self._turn, len(self._outputs))
            self._outputs.append((tensor.detach(), version_of(tensor)))

    def output(self, node: Node, output: int = 0) -> torch.Tensor | None:
        """What a node has made: an output of a model, maybe in another shape."""
        shape = shape_of(node, output)
        if node is not None and name_of(node) == "Select" and node.next_functions[0][0] is not None:
            whole = self.output(*node.next_functions[0])
            dim, index = option(node, "dim"), option(node, "index")
            if whole is None or not isinstance(dim, int) or not isinstance(index, int):
                return None
            return whole.select(signed(dim), signed(index))
        while node is not None and shape is not None:
            turn, place = getattr(node, "metadata", {}).get(_PLACE, (-1, 0))
            if turn == self._turn and place < len(self._outputs):
                tensor, version = self._outputs[place]
                # Written to since: these are other numbers.
                fits = version_of(tensor) == version and tensor.numel() == math.prod(shape)
                return tensor.reshape(shape) if fits else None
            if name_of(node) not in _IN_ORDER or len(node.next_functions) != 1:
                return None
            node = node.next_functions[0][0]
        return None

    def clear(self) -> None:
        """The backward pass was seen, or will not come."""
        if self._outputs:
            self._outputs.clear()
            self._turn += 1
        if self.inputs:
            self.inputs.clear()
