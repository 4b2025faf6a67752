"""Places and operations: what they say of themselves, and which are the same ones again."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import nethook
from nethook.addresses.tree import Tree
from nethook.errors import NotRunError
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.ops.consumer import (
    Met,
    ModuleCall,
    Op,
    OpConsumer,
    OpWatcher,
    Place,
    _places_of_models,
)
from nethook.hooks.ops.watch import watch_ops
from tests.hooks.common import net


class Keeps(OpConsumer):
    """Keeps every operation and every place it is told of."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.places: list[Place] = []

    def after(self, op: Op, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        self.ops.append(op)

    def entered(self, call: ModuleCall, args: Any) -> None:
        self.places.append(call.place)


class Shares(Keeps):
    """One that may be given the operations of an earlier scope."""

    shares_ops = True


def ops_of(model: nn.Module, consumer: Keeps, calls: int = 1) -> list[Op]:
    with Attachment(Owner("nethook.test")) as hooks:
        watch_ops(Tree(model), hooks, consumer)
        for _ in range(calls):
            model(torch.ones(1, 4))
    return consumer.ops


def test_a_place_knows_its_module_and_whether_it_is_the_model() -> None:
    model = net()
    consumer = Keeps()
    ops_of(model, consumer)
    places = consumer.places
    assert [place.module for place in places] == [model, *model]
    assert [place.is_root for place in places] == [True, False, False, False]
    assert [place.order for place in places] == [0, 1, 2, 3]
    del model
    gc.collect()
    assert all(place.module is None for place in places)


def test_every_call_meets_the_same_operations_with_what_was_kept_there() -> None:
    class Counts(Keeps):
        def after(self, op: Op, function: Any, args: Any, kwargs: Any, result: Any) -> None:
            op.data = 1 if op.data is None else op.data + 1
            super().after(op, function, args, kwargs, result)

    ops = ops_of(net(), Counts(), calls=3)
    assert [op.address for op in ops[:3]] == ["0/linear#0", "1/relu#0", "2/linear#0"]
    assert [op.data for op in ops] == [3] * 9
    assert all(one is other for one, other in zip(ops[:3], ops[3:6], strict=True))


def test_the_next_scope_meets_them_again_where_they_are_shared() -> None:
    model = net()
    first, second = (ops_of(model, Shares()) for _ in range(2))
    assert [id(op) for op in first] == [id(op) for op in second]
    own = ops_of(model, Keeps())
    assert not {id(op) for op in own} & {id(op) for op in first}
    other = ops_of(net(), Shares())
    assert not {id(op) for op in other} & {id(op) for op in first}


def test_a_model_that_has_changed_is_met_anew() -> None:
    model = nn.Sequential(OrderedDict(a=nn.Linear(4, 4)))
    assert [op.address for op in ops_of(model, Shares())] == ["a/linear#0"]
    model.add_module("b", model._modules.pop("a"))
    assert [op.address for op in ops_of(model, Shares())] == ["b/linear#0"]


def test_what_is_known_goes_with_its_model() -> None:
    before = len(_places_of_models)
    model = net()
    ops_of(model, Shares())
    assert len(_places_of_models) == before + 1
    del model
    gc.collect()
    assert len(_places_of_models) == before


def test_another_model_in_the_same_place_is_not_taken_for_the_first() -> None:
    model, other = net(), net()
    ops_of(model, Shares())
    # As if the first had left its number to the second.
    _places_of_models[id(other)] = _places_of_models[id(model)]
    found = ops_of(other, Shares())
    assert found[0].place.module is other[0]


def test_a_module_has_had_the_most_that_any_call_of_it_had() -> None:
    met, model = Met(), net()
    at = OpWatcher(Tree(model), OpConsumer()).place_of(model[1])
    assert at is not None
    assert OpWatcher(Tree(net()), OpConsumer()).place_of(model[1]) is None
    met.note(at, {"relu": 2})
    met.note(at, {"relu": 1, "tanh": 3})
    met.note(at, {"relu": 1})
    assert met.counts("1") == {"relu": 2, "tanh": 3}
    assert met.counts("0") is None
    assert not met.was_fused("1")
    met.note_fused(at)
    assert met.was_fused("1")
    assert not met.was_fused("0")


def test_a_module_that_runs_differently_says_all_that_it_had() -> None:
    class Varies(nn.Module):
        def forward(self, x: Tensor, times: int) -> Tensor:
            for _ in range(times):
                x = torch.relu(x)
            return x if times > 1 else torch.tanh(x)

    model = Varies()
    with nethook.trace(model, "/exp#0") as tape:
        model(torch.ones(1), 2)
        model(torch.ones(1), 1)
    had = r"'' has had '/relu#0', '/relu#1', '/tanh#0'\.$"
    with pytest.raises(NotRunError, match=had):
        tape["/exp#0"].output


def test_what_is_taken_off_inside_a_forward_sees_no_more_of_it() -> None:
    class Leaves(Keeps):
        def after(self, op: Op, function: Any, args: Any, kwargs: Any, result: Any) -> None:
            super().after(op, function, args, kwargs, result)
            hooks.remove()

    model, consumer = net(), Leaves()
    hooks = Attachment(Owner("nethook.test"))
    watch_ops(Tree(model), hooks, consumer)
    model(torch.ones(1, 4))
    assert [op.address for op in consumer.ops] == ["0/linear#0"]
    model(torch.ones(1, 4))
    assert len(consumer.ops) == 1
    # The next scope is not disturbed, and nothing stays after it.
    found = [op.address for op in ops_of(model, Keeps())]
    assert found == ["0/linear#0", "1/relu#0", "2/linear#0"]
    assert torch._C._len_torch_function_stack() == 0


def test_what_another_thread_takes_off_inside_a_forward_sees_no_more_of_it() -> None:
    """That thread cannot reach the calls that are under way in this one."""

    class Interrupted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x = torch.exp(x)
            thread = threading.Thread(target=hooks.remove)
            thread.start()
            thread.join()
            return torch.sin(x)

    model, consumer = Interrupted(), Keeps()
    hooks = Attachment(Owner("nethook.test"))
    watch_ops(Tree(model), hooks, consumer)
    model(torch.ones(1, 4))
    assert [op.address for op in consumer.ops] == ["/exp#0"]
    # The next scope is not disturbed.
    assert ops_of(net(), Keeps())[0].address == "0/linear#0"
    assert torch._C._len_torch_function_stack() == 0


def test_what_was_kept_at_an_operation_is_free_when_the_scope_ends() -> None:
    class Held:
        pass

    class Holds(OpConsumer):
        def after(self, op: Op, function: Any, args: Any, kwargs: Any, result: Any) -> None:
            op.data = Held()
            held.append(weakref.ref(op.data))

    held: list[weakref.ref[Held]] = []
    model = net()
    gc.collect()
    gc.disable()  # counting references has to be enough
    try:
        with Attachment(Owner("nethook.test")) as hooks:
            watch_ops(Tree(model), hooks, Holds())
            model(torch.ones(1, 4))
            assert [each() is None for each in held] == [False] * 3
        assert [each() is None for each in held] == [True] * 3
    finally:
        gc.enable()


def test_one_that_waits_for_results_and_failures_is_told_of_both() -> None:
    class Fails(Keeps):
        def failed(
            self, op: Op, function: Any, args: Any, kwargs: Any, error: BaseException
        ) -> None:
            failures.append((op.address, type(error)))

    failures: list[tuple[str, type]] = []
    model, consumer = net(), Fails()
    with Attachment(Owner("nethook.test")) as hooks:
        watch_ops(Tree(model), hooks, consumer)
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            model(torch.ones(1, 3))
    assert failures == [("0/linear#0", RuntimeError)]
    assert consumer.ops == []
