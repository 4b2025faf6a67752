"""Modes of ours among those of others."""

from __future__ import annotations

import torch
from torch.overrides import TorchFunctionMode

from nethook.hooks.modes import quiet
from nethook.hooks.ops.mode_stack import alone, is_on_stack, put_below, take_off
from nethook.torch_private import function_mode_at, function_modes


class Mode(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))


def test_below_those_of_the_script():
    mine, theirs = Mode(), Mode()
    with theirs:
        put_below(mine)
        assert [function_mode_at(depth) for depth in range(2)] == [mine, theirs]
    assert is_on_stack(mine)
    take_off(mine)
    assert function_modes() == 0
    assert not is_on_stack(mine)


def test_from_below_others():
    mine, theirs = Mode(), Mode()
    put_below(mine)
    with theirs:
        take_off(mine)
        torch.ones(2)
        assert function_mode_at(0) is theirs
    assert theirs.seen > 0
    assert mine.seen == 0


def test_above_a_default_device():
    mine = Mode()
    with torch.device("cpu"):
        put_below(mine)
        assert function_mode_at(1) is mine
        take_off(mine)
        assert function_modes() == 1


def test_alone_inside_a_quiet_block():
    mine, theirs = Mode(), Mode()
    with theirs:
        before = theirs.seen
        with quiet(), alone(), mine:
            torch.ones(2) + 1
        assert theirs.seen == before
        torch.ones(2) + 1
        assert theirs.seen > before
    assert mine.seen > 0
