"""Calls of watched models that are under way, and what the outermost one is: training or not."""

from __future__ import annotations

from typing import Any, Final

PLAIN: Final[dict[str, Any]] = {}
"""The keyword arguments of a call with one tensor, of torch's own class, and nothing else, in which
no mode of the script's is on. That is asked once for each call, and known by this very object."""


class Calls:
    """One inside the other: the outermost call decides the phase of all of them.

    A watch of several threads has one of these whose numbers are those of the thread that asks:
    see `watching/threads.py`.
    """

    def __init__(self) -> None:
        self.depth = 0
        """Calls under way, one inside the other."""
        self.outermost = ""
        """The model whose call is, or was last, the outermost."""
        self.training = True
        """Whether the outermost call has gradients."""
        self.called = False
        """Whether anything that is watched was called with gradients in this step."""
        self.nobody = False
        """Whether nobody calls what is watched: tensors of no module."""
        self.plain: object = None
        """The arguments of the last such call (`PLAIN`), until it has ended."""
        self.in_backward = 0
        """Backward passes under way; above 1 only where several threads are followed."""

    def begins(self, model: str) -> bool:
        """A call begins; whether it is an outermost one."""
        self.depth += 1
        if self.depth > 1:
            return False
        self.outermost = model
        return True

    def interrupted(self, under_way: int) -> None:
        """Calls have ended without a word, but for so many."""
        self.depth = under_way

    def ends(self) -> bool:
        """A call has returned or raised; whether it was an outermost one."""
        self.depth = depth = self.depth - 1 if self.depth else 0
        return depth == 0
