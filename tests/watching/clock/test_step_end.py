"""What is done at the end of a step is done once, but for what an interrupt came in."""

from __future__ import annotations

import pytest

from nethook.watching.clock.step_end import StepEnd


def test_parts_are_done_in_their_order():
    seen = []
    end = StepEnd()
    end.begin([lambda step: seen.append(("a", step)), lambda step: seen.append(("b", step))])
    end.go_on(3)
    end.go_on(3)
    assert seen == [("a", 3), ("b", 3)]


def test_after_an_interrupt_the_rest_is_done():
    seen = []

    def interrupted(step):
        seen.append("b")
        if seen.count("b") == 1:
            raise KeyboardInterrupt

    end = StepEnd()
    end.begin([lambda _: seen.append("a"), interrupted, lambda _: seen.append("c")])
    with pytest.raises(KeyboardInterrupt):
        end.go_on(0)
    end.go_on(0)
    assert seen == ["a", "b", "b", "c"]
