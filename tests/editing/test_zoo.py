"""An edit does what the same change written by hand does: on every exhibit of the zoo.

By hand means plain hooks of torch, which return the changed value. Exhibits on which such hooks
cannot serve as a judge (they say why) are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

import nethook
from nethook.addresses.nested import map_tensors
from tests.zoo import Exhibit, assert_same, observe
from tests.zoo.marks import exhibits_that

judged = exhibits_that(lambda exhibit: not exhibit.no_oracle)


def every_module(name: str, module: nn.Module) -> bool:
    return True


def halved(value: Any) -> Any:
    """Every floating-point tensor in a value, halved: exact in every type, and it shrinks."""

    def half(tensor: torch.Tensor) -> torch.Tensor:
        plain = tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized
        return tensor * 0.5 if plain and tensor.is_floating_point() else tensor

    return map_tensors(half, value)


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


def outcome(exhibit: Exhibit, around: Any) -> Any:
    """What came of a run: an observation, or the error that the change led to."""
    try:
        return observe(exhibit, around=around)
    except Exception as error:  # halving a value can break an exhibit, by hand as well
        return type(error)


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
