"""The stack of torch's function modes: ours on it, among those of others, which come and go.

Torch takes off whatever is on top when a block of the script's ends. So what is put on in the midst
of a block, and may outlive it, goes below the modes of the script: their ends meet their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nethook.torch_private import (
    default_device_mode,
    function_mode_at,
    function_modes,
    pop_function_mode,
    push_function_mode,
    with_function_overrides,
)


def is_on_stack(mode: Any) -> bool:
    """Whether a mode is on, in this thread."""
    return any(function_mode_at(depth) is mode for depth in range(function_modes()))


def put_below(mode: Any) -> None:
    """Puts a mode on, below those of the script; that of a default device stays the lowest."""
    above = []
    while function_modes() and not isinstance(
        function_mode_at(function_modes() - 1), default_device_mode
    ):
        above.append(pop_function_mode())
    push_function_mode(mode)
    for other in reversed(above):
        push_function_mode(other)


def take_off(mode: Any) -> None:
    """Takes a mode off the stack of modes, from wherever in it; those of others stay."""
    above = []
    while function_modes():
        top = pop_function_mode()
        if top is mode:
            break
        above.append(top)
    for other in reversed(above):
        push_function_mode(other)


@contextmanager
def alone() -> Iterator[None]:
    """A block in which modes are seen again, inside `quiet`, and those of the script are not on.

    That of a default device stays: it decides where tensors are made.
    """
    above = []
    try:
        while function_modes() and not isinstance(
            function_mode_at(function_modes() - 1), default_device_mode
        ):
            above.append(pop_function_mode())
        with with_function_overrides():
            yield
    finally:
        for other in reversed(above):
            push_function_mode(other)
