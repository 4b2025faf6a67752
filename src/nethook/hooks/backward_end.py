"""Doing something once when the backward pass that runs now has ended."""

from __future__ import annotations

from collections.abc import Callable

import torch


def when_backward_ends(function: Callable[[], None]) -> None:
    """Calls `function` at the end of the backward pass that runs now; only for gradient hooks.

    torch's own distributed engines rely on the same call, which has no public name.
    """
    torch.autograd.Variable._execution_engine.queue_callback(function)
