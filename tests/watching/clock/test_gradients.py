"""What became of the gradients of backward passes."""

from __future__ import annotations

from nethook.watching.clock.gradients import Gradients


def test_clearing_says_how_many_passes_nobody_has_used():
    gradients = Gradients()
    gradients.unused = gradients.since_step = 3
    assert (gradients.zeroed(False), gradients.unused, gradients.cleared) == (3, 0, False)
    assert (gradients.zeroed(True), gradients.cleared, gradients.since_step) == (0, True, 3)
