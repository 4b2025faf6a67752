"""A pass without gradient: an evaluation, or something else that a training loop does."""

from __future__ import annotations


class PassWithoutGrad:
    """The pass that is under way, or the last one."""

    def __init__(self) -> None:
        self.open = False
        """Whether it is under way."""
        self.phase = "aux"
        """What it is taken for so far: `eval` or `aux`."""

    def begins(self) -> bool:
        """A call without gradient begins; whether it is the first of a pass."""
        if self.open:
            return False
        self.open = True
        self.phase = "aux"
        return True
