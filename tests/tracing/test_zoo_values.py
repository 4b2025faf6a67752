"""What a tape holds is what hand-written hooks and `torch.autograd.grad` give, on every exhibit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import nethook
from nethook.errors import NoGradientError, NotRunError, OverwrittenError
from tests.tracing.test_zoo import bare, every_module, hooks_of
from tests.zoo import (
    Exhibit,
    Given,
    HandTape,
    assert_same,
    built,
    differences,
    hand_hooks,
    loss_of,
    observe,
    paired,
    quiet,
    snapshot,
)
from tests.zoo.marks import exhibits_that

with_oracle = exhibits_that(lambda item: not item.no_oracle)
# Reentrant checkpoints refuse `autograd.grad`, by a plain error of torch's.
REENTRANT = {"checkpoint_reentrant"}
with_gradients = exhibits_that(
    lambda item: item.differentiable and not item.no_oracle and item.name not in REENTRANT
)


@with_oracle
@pytest.mark.parametrize("copy", [None, True], ids=["lazy", "copied"])
def test_values_equal_those_of_hand_written_hooks(exhibit: Exhibit, copy: bool | None) -> None:
    hand: list[HandTape] = []
    tapes: list[Any] = []

    @contextmanager
    def by_hand(model: nn.Module) -> Iterator[None]:
        with hand_hooks(model) as tape:
            yield
        hand.append(tape)

    @contextmanager
    def traced(model: nn.Module) -> Iterator[None]:
        with nethook.trace(model, every_module, inputs=True, copy=copy) as tape:
            yield
        tapes.append(tape)

    # The oracle serves only where it does not change the run itself.
    assert_same(bare(exhibit), observe(exhibit, around=by_hand, audit=hooks_of), "hooked by hand")
    observe(exhibit, around=traced)
    for name, calls in hand[0].calls.items():
        seen = [call for call in tapes[0][escaped(name)].calls if returned(call)]
        assert len(seen) == len(calls), f"calls of {name!r}"
        for at, (expected, call) in enumerate(zip(calls, seen, strict=True)):
            for what, facts, read in (
                ("output", expected.output, lambda call=call: call.output),
                ("inputs", expected.arguments, lambda call=call: (call.args, call.kwargs)),
            ):
                try:
                    value = read()
                except OverwrittenError:
                    # Allowed where torch can make no lazy copy; a copy at once is always right.
                    assert copy is None
                    continue
                lines = differences(facts, snapshot(value, values_only=True))
                assert not lines, f"{what} of {name!r}, call {at}: {lines}"


def returned(call: Any) -> bool:
    try:
        call.output
    except NotRunError:
        return False
    except OverwrittenError:
        return True
    return True


def escaped(name: str) -> str:
    return "".join(f"\\{sign}" if sign in "*?[]{}/#\\" else sign for sign in name)


@with_gradients
def test_gradients_equal_those_of_autograd(exhibit: Exhibit) -> None:
    with quiet(exhibit):
        # One run keeps every value by hand and asks autograd …
        model = built(exhibit)
        with hand_hooks(model, keep=True) as hand:
            loss = loss_of(exhibit.call(model, Given()))
        oracle = Oracle(loss)
        # … the other is traced; backward passes inside of the call come first and do not count.
        model = built(exhibit)
        with nethook.trace(model, every_module, grads=True, input_grads=True, inputs=True) as tape:
            loss = loss_of(exhibit.call(model, Given()))
            passes = {
                (name, at): len(passes_of(call))
                for name in hand.calls
                for at, call in enumerate(finished(tape, name))
            }
            loss.backward()  # type: ignore[no-untyped-call]
    for name, calls in hand.calls.items():
        for at, (call, seen) in enumerate(zip(calls, finished(tape, name), strict=True)):
            assert call.kept is not None
            arguments, output = call.kept
            what = f"{name!r}, call {at}"
            if all(call.untouched(tensor) for tensor, _ in paired(output, output)):
                new = passes_of(seen)[passes[name, at] :]
                oracle.check(f"output of {what}", output, new)
            if passes[name, at] == 0 and all(
                call.untouched(tensor) for tensor, _ in paired(arguments, arguments)
            ):
                oracle.check(f"inputs of {what}", arguments, input_passes_of(seen))


def finished(tape: Any, name: str) -> list[Any]:
    return [call for call in tape[escaped(name)].calls if returned(call)]


def passes_of(call: Any) -> list[Any]:
    try:
        return list(call.grads)
    except NoGradientError:
        return []


def input_passes_of(call: Any) -> list[Any]:
    try:
        grads = call.input_grads
    except NoGradientError:
        return []
    return [(grads.args, grads.kwargs)]


class Oracle:
    """Asks `torch.autograd.grad` and compares."""

    def __init__(self, loss: Tensor) -> None:
        self._loss = loss

    def check(self, what: str, value: Any, passes: list[Any]) -> None:
        """`passes` are the gradients of `value` that arrived in the one backward of the loss."""
        differentiable = [tensor for tensor, _ in paired(value, value) if tensor.requires_grad]
        if not differentiable:
            assert not passes, f"{what}: gradients of what needs none"
            return
        expected = torch.autograd.grad(
            self._loss, differentiable, retain_graph=True, allow_unused=True
        )
        if all(grad is None for grad in expected):
            assert not passes, f"{what}: a gradient came out of nowhere"
            return
        assert len(passes) == 1, f"{what}: {len(passes)} gradients, expected one"
        arrived = [grad for tensor, grad in paired(value, passes[0]) if tensor.requires_grad]
        lines = differences(
            snapshot(list(expected), values_only=True), snapshot(arrived, values_only=True)
        )
        assert not lines, f"{what}: {lines}"


@with_gradients
def test_outputs_that_stay_in_the_graph_can_be_differentiated(exhibit: Exhibit) -> None:
    with quiet(exhibit):
        model = built(exhibit)
        with hand_hooks(model, keep=True) as hand:
            loss = loss_of(exhibit.call(model, Given()))
        expected = Oracle(loss)
        model = built(exhibit)
        with nethook.trace(model, every_module, detach=False) as tape:
            traced = loss_of(exhibit.call(model, Given()))
    for name, calls in hand.calls.items():
        for at, (call, seen) in enumerate(zip(calls, finished(tape, name), strict=True)):
            assert call.kept is not None
            kept = call.kept[1]
            if not all(call.untouched(tensor) for tensor, _ in paired(kept, kept)):
                continue
            pairs = [(a, b) for a, b in paired(kept, seen.output) if a.requires_grad]
            if not pairs:
                continue
            by_hand, by_tape = zip(*pairs, strict=True)
            grads = torch.autograd.grad(traced, by_tape, retain_graph=True, allow_unused=True)
            if any(grad is not None for grad in grads):
                expected.check(f"{name!r}, call {at}", list(by_hand), [list(grads)])


@with_gradients
def test_parameter_gradients_equal_those_of_autograd(exhibit: Exhibit) -> None:
    with quiet(exhibit):
        model = built(exhibit)
        loss = loss_of(exhibit.call(model, Given()))
        names = [name for name, each in model.named_parameters() if each.requires_grad]
        wanted = [model.get_parameter(name) for name in names]
        oracle = dict(zip(names, torch.autograd.grad(loss, wanted, allow_unused=True), strict=True))
        model = built(exhibit)
        known = dict(model.named_parameters())
        with nethook.trace(model, param_grads=True) as tape:
            loss = loss_of(exhibit.call(model, Given()))
            before = {name: len(parameter_passes(tape, name)) for name in oracle}
            loss.backward()  # type: ignore[no-untyped-call]
    for name, expected in oracle.items():
        if known.get(name) is not model.get_parameter(name):
            continue  # replaced by another parameter during the run
        passes = parameter_passes(tape, name)[before[name] :]
        assert len(passes) == (expected is not None), name
        if expected is not None:
            lines = differences(
                snapshot(expected, values_only=True), snapshot(passes[0], values_only=True)
            )
            assert not lines, f"{name}: {lines}"


def parameter_passes(tape: Any, name: str) -> list[Any]:
    if name not in tape.params:
        return []
    try:
        return list(tape.params[name].grads)
    except NoGradientError:
        return []
