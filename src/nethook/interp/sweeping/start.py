"""The start of a run: random states, buffers and inputs as they were before the first one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from nethook.addresses.inputs import Inputs
from nethook.addresses.tree import Tree
from nethook.interp.sweeping.answering import Written
from nethook.interp.sweeping.batches import mapped_inputs, versions
from nethook.restoring.randomness import random_states, save_random_states


class SameStart:
    """Lets every run of a model begin as the first one did, once it is known what that changed."""

    def __init__(self, tree: Tree) -> None:
        self._put_back = save_random_states()
        self._written = Written(tree)
        self.draws = True  # until it is known not to
        self.writes_inputs = False
        self.buffer = ""
        """A buffer that a run writes to."""

    @contextmanager
    def observed(self, inputs: Inputs) -> Iterator[None]:
        """A block with the first run; notes what it has drawn and written."""
        before, given = random_states(), versions((inputs.args, dict(inputs.kwargs)))
        yield
        self.draws = random_states() != before
        self.writes_inputs = versions((inputs.args, dict(inputs.kwargs))) != given
        self.buffer = self._written.which()

    def again(self) -> None:
        """Random states and buffers as they were before the first run."""
        if self.buffer:
            self._written.put_back()
        if self.draws:
            self._put_back()

    def fresh(self, inputs: Inputs) -> Inputs:
        """Inputs that a run may write to."""
        return mapped_inputs(torch.clone, inputs) if self.writes_inputs else inputs
