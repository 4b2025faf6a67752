"""What became of the gradients of backward passes: a step used them, or zero_grad wiped them."""

from __future__ import annotations


class Gradients:
    """Backward passes since somebody has done something with their gradients."""

    def __init__(self) -> None:
        self.unused = 0
        """Backward passes whose gradients no step has used, nor zero_grad wiped."""
        self.since_step = 0
        """Backward passes since an optimizer has stepped."""
        self.cleared = False
        """Whether an optimizer has cleared its gradients since one has stepped."""

    def zeroed(self, by_optimizer: bool) -> int:
        """They are about to be cleared; of how many passes nobody has used them."""
        self.cleared = by_optimizer
        wiped, self.unused = self.unused, 0
        return wiped
