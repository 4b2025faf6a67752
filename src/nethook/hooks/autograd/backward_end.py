"""Doing something once when the backward pass that runs now has ended."""

from __future__ import annotations

from collections.abc import Callable

from nethook.torch_private import queue_callback


def when_backward_ends(function: Callable[[], None]) -> None:
    """Calls `function` at the end of the backward pass that runs now; only for gradient hooks.

    torch's own distributed engines rely on the same call, which has no public name.
    """
    queue_callback(function)
