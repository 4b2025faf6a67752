"""Random sites, random options, scopes in scopes, and exceptions in the middle of it all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import nethook
from tests.tracing.zoo_runs import addresses, bare, escaped, hooks_of
from tests.zoo import (
    PLACES,
    Bomb,
    Boom,
    Exhibit,
    Scope,
    SilentBoom,
    assert_same,
    built,
    observe,
)
from tests.zoo.marks import every_exhibit

# Derandomised: a failure is the same for everyone who runs it. Few examples an exhibit, for there
# are many exhibits, and each of them draws others.
few = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # what fails is small already, and shrinking takes minutes
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True)
class Plan:
    """One trace: which modules, how they are named in the call, and with what options."""

    names: tuple[str, ...]
    spelling: str
    options: tuple[tuple[str, Any], ...]

    def patterns(self, model: nn.Module) -> list[Any]:
        if self.spelling == "predicate":
            return [lambda name, module: any(module is each for each in self.modules(model))]
        if self.spelling == "modules":
            return self.modules(model)
        return [escaped(name) for name in self.names]

    def modules(self, model: nn.Module) -> list[nn.Module]:
        return [model.get_submodule(name) for name in self.names]


def shortened(tensor: Tensor) -> Any:
    """A transform that returns something other than what it was given."""
    return None if tensor.is_nested else tuple(tensor.shape)


@cache
def names_of(exhibit: Exhibit) -> list[str]:
    return list(addresses(built(exhibit)))


@cache
def calls_of(exhibit: Exhibit) -> int:
    counter = Bomb(at=-1)
    observe(exhibit, bomb=counter)
    return counter.calls


def plans(exhibit: Exhibit) -> st.SearchStrategy[Plan]:
    names = st.lists(st.sampled_from(names_of(exhibit)), min_size=1, max_size=6, unique=True)
    transforms = [] if exhibit.logs_operations else [shortened, torch.clone]
    options = st.fixed_dictionaries(
        {
            "inputs": st.booleans(),
            "grads": st.booleans(),
            "input_grads": st.booleans(),
            "param_grads": st.booleans(),
            "copy": st.sampled_from([None, None, True, False]),
            "detach": st.sampled_from([True, True, False]),
            "dtype": st.sampled_from([None, None, torch.float64]),
            "transform": st.sampled_from([None, None, *transforms]),
            "calls": st.sampled_from(["all", "last", 2]),
        }
    )
    return st.builds(
        lambda names, spelling, options: Plan(tuple(names), spelling, tuple(options.items())),
        names,
        st.sampled_from(["names", "modules", "predicate"]),
        options,
    )


def scopes(plans: list[Plan]) -> Scope:
    """Traces within traces, the tapes of which are read as they are left."""

    @contextmanager
    def around(model: nn.Module) -> Iterator[None]:
        with ExitStack() as stack:
            tapes = [
                stack.enter_context(
                    nethook.trace(model, *plan.patterns(model), **dict(plan.options))
                )
                for plan in plans
            ]
            yield
            for tape in tapes:
                repr(tape)

    return around


@every_exhibit
@few
@given(data=st.data())
def test_random_traces_change_nothing(exhibit: Exhibit, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(plans(exhibit), min_size=1, max_size=3))
    inside = data.draw(st.booleans())
    assert_same(
        bare(exhibit, inside),
        observe(exhibit, around=scopes(chosen), audit=hooks_of, backward_inside=inside),
        f"traced with {chosen}",
    )


@every_exhibit
@few
@given(data=st.data())
def test_an_exception_passes_through_and_leaves_nothing(
    exhibit: Exhibit, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, calls_of(exhibit)))  # one too many: nothing is thrown
    place = data.draw(st.sampled_from(PLACES))
    kind = data.draw(st.sampled_from([Boom, SilentBoom]))
    chosen = data.draw(st.lists(plans(exhibit), min_size=1, max_size=2))
    expected = observe(exhibit, bomb=Bomb(at, place, kind), audit=hooks_of)
    seen = observe(exhibit, bomb=Bomb(at, place, kind), around=scopes(chosen), audit=hooks_of)
    assert_same(expected, seen, f"{kind.__name__} {place} call {at}, traced with {chosen}")
