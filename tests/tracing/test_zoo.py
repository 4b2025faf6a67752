"""An observer never changes the run: every exhibit of the zoo, traced and not, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from torch import nn

import nethook
from tests.tracing.zoo_runs import bare, every_module, hooks_of, read_all
from tests.zoo import Exhibit, assert_same, observe
from tests.zoo.marks import every_exhibit

EVERYTHING = {"inputs": True, "grads": True, "input_grads": True, "param_grads": True}


@every_exhibit
@pytest.mark.parametrize("patterns", [(), (every_module,)], ids=["leaves", "modules"])
@pytest.mark.parametrize("copy", [None, True, False], ids=["lazy", "copied", "referenced"])
def test_tracing_everything_changes_nothing(
    exhibit: Exhibit, patterns: tuple[Any, ...], copy: bool | None
) -> None:
    @contextmanager
    def traced(model: nn.Module) -> Iterator[None]:
        with nethook.trace(model, *patterns, copy=copy, **EVERYTHING):
            yield

    assert_same(bare(exhibit), observe(exhibit, around=traced, audit=hooks_of), "traced")


@every_exhibit
def test_backward_after_the_scope_and_reading_in_between_change_nothing(exhibit: Exhibit) -> None:
    @contextmanager
    def traced(model: nn.Module) -> Iterator[None]:
        with nethook.trace(model, every_module, **EVERYTHING) as tape:
            yield
            repr(tape)
            tape._repr_html_()
            for record in tape.values():
                for call in record.calls:
                    read_all(call)
        kept.append(tape)  # alive while the backward runs, and no longer

    kept: list[Any] = []
    expected = bare(exhibit, backward_inside=False)
    seen = observe(exhibit, around=traced, audit=hooks_of, backward_inside=False, settle=kept.clear)
    assert_same(expected, seen, "traced, read, then differentiated")


@every_exhibit
def test_hooks_of_nethook_are_gone_also_where_others_stay(exhibit: Exhibit) -> None:
    found: list[Any] = []

    def after(model: nn.Module) -> object:
        found.extend(info for info in nethook.audit(model) if info.ours)
        return None

    def traced(model: nn.Module) -> Any:
        return nethook.trace(model, **EVERYTHING)

    observe(exhibit, around=traced, audit=after)
    assert found == []
