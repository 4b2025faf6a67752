"""Everything is put back, also where putting back is interrupted or fails."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn

import nethook.restoring
from nethook.restoring.unchanged import unchanged
from nethook.restoring.undo import undone
from tests.restoring.adversaries import ADVERSARIES
from tests.restoring.fingerprint import Fingerprint

ROOM = str(Path(nethook.restoring.__file__).parent)


def test_what_fails_does_not_keep_the_others() -> None:
    done: list[int] = []

    def fail() -> None:
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"), undone([lambda: done.append(1), fail]):
        pass
    assert done == [1]


def test_an_error_of_the_block_stays_the_error() -> None:
    done: list[int] = []
    with pytest.raises(ZeroDivisionError), undone([lambda: done.append(1)]):
        raise ZeroDivisionError
    assert done == [1]


class Interrupts:
    """Raises KeyboardInterrupt before the n-th line that the room runs, once."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(ROOM):
            return None
        if event == "line":
            self._left -= 1
            if self._left == 0:
                raise KeyboardInterrupt
        return self

    @property
    def came(self) -> bool:
        return self._left <= 0


def _changed(model: Any, x: torch.Tensor) -> None:
    """Some of everything that has to be put back."""
    model.n.add_(1)
    model.cache = x.clone()
    model.last.weight.data.mul_(2)
    model.first.weight.grad.zero_()
    model.log.append(1)
    model.eval()
    x.mul_(3)
    torch.rand(1)


def test_an_interrupt_at_any_line_of_putting_back_loses_nothing() -> None:
    """But for the two lines that lead there, for which Python's `with` has no answer."""
    torch.manual_seed(0)
    model, x = ADVERSARIES["list"](), torch.ones(3, 4)
    before = Fingerprint(model, x)
    at, interrupted = 3, 0
    while True:
        interrupts = Interrupts(at)
        block = unchanged(model, x)
        block.__enter__()
        _changed(model, x)
        sys.settrace(interrupts)
        try:
            block.__exit__(None, None, None)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(None)
        if not interrupts.came:
            break
        del block
        gc.collect()
        assert not before.changes(Fingerprint(model, x)), at
        at += 7
    assert interrupted > 30


def test_what_is_not_left_in_order_is_put_back_when_it_is_let_go() -> None:
    model = nn.BatchNorm1d(3)
    block = unchanged(model, evaluation=True)
    block.__enter__()
    assert not model.training
    del block
    gc.collect()
    assert model.training
