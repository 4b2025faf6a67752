"""Calls of watched models that are under way, and what the outermost one is: training or not."""

from __future__ import annotations


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
