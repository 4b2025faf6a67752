"""A Trace without an edit changes nothing: every exhibit of the zoo, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest
from torch import nn

import nethook
from tests.zoo import Exhibit, Observation, assert_same, observe
from tests.zoo.marks import every_exhibit


def hooks_of(model: nn.Module) -> object:
    return [(info.address, info.kind, info.owner, info.ours) for info in nethook.audit(model)]


@cache
def bare(exhibit: Exhibit) -> Observation:
    return observe(exhibit, audit=hooks_of)


def every_module(name: str, module: nn.Module) -> bool:
    return True


@every_exhibit
@pytest.mark.parametrize("detach", [True, False], ids=["detached", "in the graph"])
def test_tracing_every_module_changes_nothing(exhibit: Exhibit, detach: bool) -> None:
    @contextmanager
    def traced(model: nn.Module) -> Iterator[None]:
        names = list(nethook.select(model, every_module))
        with nethook.TraceDict(model, names, retain_input=True, detach=detach):
            yield

    assert_same(bare(exhibit), observe(exhibit, around=traced, audit=hooks_of), "traced")


@every_exhibit
def test_retaining_every_layer_changes_nothing(exhibit: Exhibit) -> None:
    @contextmanager
    def retained(model: nn.Module) -> Iterator[None]:
        with nethook.InstrumentedModel(model) as inst:
            inst.retain_layers(nethook.select(model, every_module))
            yield

    assert_same(bare(exhibit), observe(exhibit, around=retained, audit=hooks_of), "retained")
