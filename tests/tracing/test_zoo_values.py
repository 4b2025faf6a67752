"""What a tape holds is what hand-written hooks and `torch.autograd.grad` give, on every exhibit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import GeneratorType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import nethook
from nethook.errors import NoGradientError, NotRunError, OverwrittenError, SeveralCallsError
from nethook.tracing.objects import NotRecorded
from tests.tracing.zoo_runs import addresses, bare, every_module, hooks_of
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
# Where `autograd.grad` cannot be the judge.
NOT_BY_AUTOGRAD = {
    "checkpoint_reentrant",  # refuses it, by an error of torch's own
    "shape_changed_in_place",  # see test_after_a_change_of_shape_in_place_every_hook_is_misled
}
with_gradients = exhibits_that(
    lambda item: item.differentiable and not item.no_oracle and item.name not in NOT_BY_AUTOGRAD
)


def finished(record: Any) -> list[Any]:
    """The calls that returned; those that raised are on a tape too, without an output."""
    return [call for call in record.calls if returned(call)]


def returned(call: Any) -> bool:
    try:
        call.output
    except NotRunError:
        return False
    except OverwrittenError:
        return True
    return True


@with_oracle
@pytest.mark.parametrize("copy", [None, True], ids=["lazy", "copied"])
def test_values_equal_those_of_hand_written_hooks(exhibit: Exhibit, copy: bool | None) -> None:
    hand: list[HandTape] = []
    tapes: list[Any] = []
    known: list[dict[str, str]] = []

    @contextmanager
    def by_hand(model: nn.Module) -> Iterator[None]:
        with hand_hooks(model) as tape:
            yield
        hand.append(tape)

    @contextmanager
    def traced(model: nn.Module) -> Iterator[None]:
        known.append(addresses(model))
        with nethook.trace(model, every_module, inputs=True, copy=copy) as tape:
            yield
        tapes.append(tape)

    # The oracle serves only where it does not change the run itself.
    assert_same(bare(exhibit), observe(exhibit, around=by_hand, audit=hooks_of), "hooked by hand")
    observe(exhibit, around=traced)
    assert set(tapes[0]) == set(known[0].values())
    for name, address in known[0].items():
        calls, seen = hand[0].calls[name], finished(tapes[0][address])
        assert len(seen) == len(calls), f"calls of {name!r}"
        for at, (expected, call) in enumerate(zip(calls, seen, strict=True)):
            inputs, output = expected.arguments, expected.output
            check_value(f"output of {name!r}, call {at}", output, lambda c=call: c.output, copy)
            check_value(
                f"inputs of {name!r}, call {at}", inputs, lambda c=call: (c.args, c.kwargs), copy
            )


def check_value(what: str, expected: Any, read: Any, copy: bool | None) -> None:
    try:
        value = read()
    except OverwrittenError:
        # Allowed where torch can make no lazy copy; a copy at once is always right.
        assert copy is None, what
        return
    if isinstance(value, NotRecorded):  # a generator: a copy of it would have to be run
        assert value.kind is GeneratorType, what
        assert expected == {"": "builtins.generator"}, what
        return
    lines = differences(expected, snapshot(value, values_only=True))
    assert not lines, f"{what}: {lines}"


@with_gradients
def test_gradients_equal_those_of_autograd(exhibit: Exhibit) -> None:
    with quiet(exhibit):
        # One run holds every value by hand and asks autograd for all gradients at once …
        model = built(exhibit)
        names = addresses(model)
        with hand_hooks(model, keep=True) as hand:
            oracle = Oracle(loss_of(exhibit.call(model, Given())), hand)
        # … the other is traced. Backward passes inside of the call come first.
        model = built(exhibit)
        with nethook.trace(model, every_module, grads=True, input_grads=True) as tape:
            loss = loss_of(exhibit.call(model, Given()))
            calls = {name: finished(tape[address]) for name, address in names.items()}
            before = {
                (name, at): (len(passes_of(call)), input_passes_of(call))
                for name in calls
                for at, call in enumerate(calls[name])
            }
            loss.backward()
    for name in names:
        for at, (call, seen) in enumerate(zip(hand.calls[name], calls[name], strict=True)):
            outputs_before, inputs_before = before[name, at]
            if call.kept_output.untouched:
                new = passes_of(seen)[outputs_before:]
                oracle.check(f"output of {name!r}, call {at}", call.kept_output.value, new)
            if call.kept_arguments.untouched:
                what, value = f"inputs of {name!r}, call {at}", call.kept_arguments.value
                arrived = input_passes_of(seen)
                if inputs_before and oracle.reaches(value):
                    # A pass inside of the call, and now another: one gradient will not do.
                    assert arrived is SeveralCallsError, f"{what}: one of several gradients"
                elif not inputs_before:
                    oracle.check(what, value, arrived)


def test_after_a_change_of_shape_in_place_every_hook_is_misled() -> None:
    # torch alone: a second hook on a tensor goes where the first one went, although a change of
    # shape in place has given the tensor another node since. A hand-written hook and nethook's
    # see the gradient in the old shape. When this fails, torch is mended: take the exhibit back in.
    y = torch.zeros(3, 4, requires_grad=True) * 2
    seen: list[tuple[int, ...]] = []
    y.register_hook(lambda grad: seen.append(tuple(grad.shape)))
    y.unsqueeze_(0)
    y.register_hook(lambda grad: seen.append(tuple(grad.shape)))
    (y * 3).sum().backward()
    assert seen == [(3, 4), (3, 4)]


def passes_of(call: Any) -> list[Any]:
    try:
        return list(call.grads)
    except NoGradientError:
        return []


def input_passes_of(call: Any) -> Any:
    try:
        grads = call.input_grads
    except NoGradientError:
        return []
    except SeveralCallsError:
        return SeveralCallsError
    return [(grads.args, grads.kwargs)]


class Oracle:
    """Asks `torch.autograd.grad` for the gradients of everything that a hand-made tape holds."""

    def __init__(self, loss: Tensor, tape: HandTape) -> None:
        self._wanted: dict[int, Tensor] = {}  # by id; held here, so that ids stay
        for calls in tape.calls.values():
            for call in calls:
                for kept in (call.kept_arguments, call.kept_output):
                    assert kept is not None
                    found = [tensor for tensor, _ in paired(kept.value, kept.value)]
                    self._wanted |= {id(each): each for each in found if each.requires_grad}
        tensors = list(self._wanted.values())
        grads = torch.autograd.grad(loss, tensors, allow_unused=True) if tensors else ()
        self._grads = dict(zip(self._wanted, grads, strict=True))

    def of(self, value: Any) -> list[Tensor | None]:
        """The gradients of the tensors in a value that can have one."""
        return [self._grads[id(t)] for t, _ in paired(value, value) if t.requires_grad]

    def reaches(self, value: Any) -> bool:
        """Whether the loss depends on anything in it."""
        return any(grad is not None for grad in self.of(value))

    def check(self, what: str, value: Any, passes: Any) -> None:
        """`passes` are the gradients of `value` that arrived in the one backward of the loss."""
        if not self.reaches(value):
            assert not passes, f"{what}: a gradient out of nowhere"
            return
        assert isinstance(passes, list), f"{what}: {passes}"
        assert len(passes) == 1, f"{what}: {passes}"
        arrived = [grad for tensor, grad in paired(value, passes[0]) if tensor.requires_grad]
        lines = differences(plain(self.of(value)), plain(arrived))
        assert not lines, f"{what}: {lines}"


def plain(grads: list[Any]) -> dict[str, object]:
    """Gradients as values; of a tensor subclass it may or may not have the type."""
    known = (Tensor, type(None))
    stripped = [each if type(each) in known else each.as_subclass(Tensor) for each in grads]
    return snapshot(stripped, values_only=True)


@with_gradients
def test_outputs_that_stay_in_the_graph_can_be_differentiated(exhibit: Exhibit) -> None:
    with quiet(exhibit):
        model = built(exhibit)
        names = addresses(model)
        with hand_hooks(model, keep=True) as hand:
            oracle = Oracle(loss_of(exhibit.call(model, Given())), hand)
        model = built(exhibit)
        with nethook.trace(model, every_module, detach=False) as tape:
            loss = loss_of(exhibit.call(model, Given()))
    pairs: list[tuple[str, Tensor, Tensor]] = []
    for name, address in names.items():
        both = zip(hand.calls[name], finished(tape[address]), strict=True)
        for at, (call, seen) in enumerate(both):
            if call.kept_output.untouched:
                pairs += [
                    (f"{name!r}, call {at}", one, two)
                    for one, two in paired(call.kept_output.value, seen.output)
                    if one.requires_grad
                ]
    if not pairs:
        return
    grads = torch.autograd.grad(loss, [two for _, _, two in pairs], allow_unused=True)
    for (what, one, _), grad in zip(pairs, grads, strict=True):
        lines = differences(plain(oracle.of(one)), plain([grad]))
        assert not lines, f"output of {what}: {lines}"


@with_oracle
def test_parameter_gradients_equal_those_of_hand_written_hooks(exhibit: Exhibit) -> None:
    by_hand: dict[str, list[Tensor]] = {}
    by_tape: dict[str, list[Tensor]] = {}

    @contextmanager
    def hooked(model: nn.Module) -> Iterator[None]:
        handles = []
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and not is_lazy(parameter):
                grads = by_hand.setdefault(name, [])
                handles.append(parameter.register_hook(lambda g, to=grads: to.append(g.clone())))
        yield
        for handle in handles:
            handle.remove()

    @contextmanager
    def traced(model: nn.Module) -> Iterator[None]:
        known = {name: address_of(model, model.get_parameter(name)) for name in by_hand}
        with nethook.trace(model, param_grads=True) as tape:
            yield
        by_tape.update({name: grads_of(tape.params[each]) for name, each in known.items()})

    observe(exhibit, around=hooked)
    observe(exhibit, around=traced)
    for name, grads in by_hand.items():
        lines = differences(plain(grads), plain(by_tape[name]))
        assert not lines, f"{name}: {lines}"


def address_of(model: nn.Module, parameter: Tensor) -> str:
    (address,) = nethook.select(model, params=True, where=lambda _, each: each is parameter)
    return address


def is_lazy(parameter: Tensor) -> bool:
    return isinstance(parameter, nn.parameter.UninitializedParameter)


def grads_of(record: Any) -> list[Any]:
    try:
        return list(record.grads)
    except NoGradientError:
        return []
