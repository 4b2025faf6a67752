"""An edit does what the same change written by hand does: on every exhibit of the zoo.

By hand means plain hooks of torch, which return the changed value. Exhibits on which such hooks
cannot serve as a judge (they say why) are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

import nethook
from tests.editing.zoo_runs import halved, outcome
from tests.zoo import Exhibit, assert_same, observe
from tests.zoo.marks import exhibits_that

judged = exhibits_that(lambda exhibit: not exhibit.no_oracle)


def every_module(name: str, module: nn.Module) -> bool:
    return True


@contextmanager
def by_hand(model: nn.Module) -> Iterator[None]:
    handles = [
        module.register_forward_hook(lambda _, __, output: halved(output))
        for module in nethook.select(model).values()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def edited(model: nn.Module, function: Any = halved) -> Iterator[None]:
    with warnings.catch_warnings():
        # Some modules of an exhibit never run, and say so.
        warnings.filterwarnings("ignore", "the edit at", UserWarning)
        # Of all threads, as a hook by hand: one of the exhibits calls its layers in several.
        with nethook.edit(model, outputs={every_module: function}, strict=False, threads="all"):
            yield


@judged
def test_an_edit_equals_the_same_change_made_by_hand(exhibit: Exhibit) -> None:
    expected, seen = outcome(exhibit, by_hand), outcome(exhibit, edited)
    if isinstance(expected, type):
        assert seen is expected
    else:
        assert_same(expected, seen, "edited")


@judged
def test_an_edit_that_returns_none_changes_nothing(exhibit: Exhibit) -> None:
    seen = observe(exhibit, around=lambda model: edited(model, lambda value: None))
    assert_same(observe(exhibit), seen, "edited with no effect")


@judged
def test_nothing_is_left_behind(exhibit: Exhibit) -> None:
    left: list[Any] = []

    @contextmanager
    def around(model: nn.Module) -> Iterator[None]:
        before = [info for info in nethook.audit(model) if info.ours]
        with edited(model):
            yield
        left.extend(info for info in nethook.audit(model) if info.ours and info not in before)

    outcome(exhibit, around)
    assert left == []
