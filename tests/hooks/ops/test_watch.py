"""The service that sees operations: addresses, changes, and that nobody else is disturbed."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as module_hooks
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

import nethook
from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.ops.consumer import ModuleCall, Op, OpConsumer
from nethook.hooks.ops.mode import OpMode, ops_are_seen, unseen
from nethook.hooks.ops.watch import recomputing, watch_ops
from nethook.hooks.threads import enter, leave


class Net(nn.Module):
    """Operations of its own before, between and after those of its children."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.fc(x)) + x
        h = self.act(h - 1)
        h += 1
        return (1 - h) + h.size(0)


OPS = ["fc/linear#0", "/relu#0", "/add#0", "/sub#0", "act/relu#0", "/add#1", "/rsub#0", "/add#2"]


class Log(OpConsumer):
    """Writes down every operation and every module."""

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.events: list[str] = []

    def after(self, op: Op, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        self.ops.append(op.address)
        self.events.append(op.address)

    def entered(self, call: ModuleCall, args: Any) -> None:
        self.events.append(f"> {call.place.address}")

    def left(self, call: ModuleCall, output: Any) -> None:
        self.events.append(f"< {call.place.address}")


class Replace(OpConsumer):
    """Replaces the result at one address."""

    def __init__(self, address: str, function: Callable[[Any], Any]) -> None:
        self.address = address
        self.function = function

    def wants(self, op: Op) -> bool:
        return op.address == self.address

    def after(self, op: Op, function: Any, args: Any, kwargs: Any, result: Any) -> Any:
        return self.function(result)


class ReplaceArgument(Replace):
    """Replaces the first argument at one address."""

    def before(self, op: Op, function: Any, args: Any, kwargs: Any) -> Any:
        return (self.function(args[0]), *args[1:]), kwargs

    def after(self, op: Op, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        return None


@contextmanager
def watched(model: nn.Module, *consumers: Any) -> Iterator[Any]:
    with Attachment(Owner("nethook.test")) as hooks:
        for consumer in consumers:
            watch_ops(Tree(model), hooks, consumer)
        yield consumers[0]


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """After each test there is no mode on the stack, and nothing is seen."""
    yield
    assert torch._C._len_torch_function_stack() == 0
    assert not ops_are_seen()


def test_operations_are_seen_in_order_with_their_addresses() -> None:
    net = Net()
    with watched(net, Log()) as log:
        net(torch.zeros(2, 4))
    assert log.ops == OPS


def test_modules_are_entered_and_left_around_their_operations() -> None:
    net = Net()
    with watched(net, Log()) as log:
        net(torch.zeros(2, 4))
    assert log.events == [
        "> ", "> fc", "fc/linear#0", "< fc", "/relu#0", "/add#0", "/sub#0", "> act", "act/relu#0",
        "< act", "/add#1", "/rsub#0", "/add#2", "< ",
    ]  # fmt: skip


def test_the_stack_is_searched_at_the_outermost_call_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes as long as the stack is deep: for every module it would be most of the cost."""
    searches: list[None] = []
    search = OpMode.forget_the_dead

    def counted(mode: OpMode) -> None:
        searches.append(None)
        search(mode)

    monkeypatch.setattr(OpMode, "forget_the_dead", counted)
    net = Net()
    with watched(net, Log()) as log:
        net(torch.zeros(2, 4))
        assert len(searches) == 1
    assert log.ops == OPS


def test_each_call_counts_from_zero() -> None:
    net = Net()
    with watched(net, Log()) as log:
        net(torch.zeros(2, 4))
        net(torch.zeros(2, 4))
    assert log.ops == OPS * 2


def test_what_is_not_wanted_is_asked_once_and_never_told() -> None:
    class Picky(Log):
        asked: list[str]

        def wants(self, op: Op) -> bool:
            self.asked.append(op.address)
            return op.name == "relu"

    net, picky = Net(), Picky()
    picky.asked = []
    with watched(net, picky):
        net(torch.zeros(2, 4))
        net(torch.zeros(2, 4))
    assert picky.ops == ["/relu#0", "act/relu#0"] * 2
    assert sorted(picky.asked) == sorted(OPS)


def test_nothing_is_seen_outside_of_a_call_nor_after_the_end() -> None:
    net = Net()
    with watched(net, Log()) as log:
        torch.zeros(2) + 1
        F.relu(net.fc.weight)
        assert torch._C._len_torch_function_stack() == 0
    net(torch.zeros(2, 4))
    assert log.ops == []


def test_a_child_that_is_called_on_its_own_is_seen() -> None:
    net = Net()
    with watched(net, Log()) as log:
        net.fc(torch.zeros(2, 4))
    assert log.ops == ["fc/linear#0"]


def test_another_model_is_not_seen_but_inside_a_call_its_operations_belong_to_the_caller() -> None:
    class Hiding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = [nn.Linear(4, 4)]

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.hidden[0](x) * 2
            return out

    model = Hiding()
    with watched(model, Log()) as log:
        nn.Linear(4, 4)(torch.zeros(2, 4))
        model(torch.zeros(2, 4))
    assert log.ops == ["/linear#0", "/mul#0"]


# -- changes ----------------------------------------------------------------------------------


def test_a_result_can_be_replaced() -> None:
    net, x = Net(), torch.randn(2, 4)
    with watched(net, Replace("/relu#0", lambda value: value * 0)):
        seen = net(x)
    h = F.relu(x - 1) + 1
    assert torch.equal(seen, (1 - h) + 2)


def test_an_argument_can_be_replaced() -> None:
    net, x = Net(), torch.randn(2, 4)
    with watched(net, ReplaceArgument("act/relu#0", lambda value: value * 0)):
        seen = net(x)
    assert torch.equal(seen, torch.full((2, 4), 2.0))


def test_what_is_attached_later_sees_what_was_changed_earlier() -> None:
    net, x = Net(), torch.randn(2, 4)
    order: list[str] = []

    def step(name: str, factor: float) -> Callable[[Tensor], Tensor]:
        def function(value: Tensor) -> Tensor:
            order.append(name)
            return value * factor + 1

        return function

    arguments = [ReplaceArgument("/sub#0", step(name, 2)) for name in "ab"]
    results = [Replace("/relu#0", step(name, 3)) for name in "cd"]
    with watched(net, *arguments, *results):
        net(x)
    assert order == ["c", "d", "a", "b"]


def test_torch_calls_of_a_consumer_are_not_operations() -> None:
    net = Net()

    class Busy(Log):
        def before(self, op: Op, function: Any, args: Any, kwargs: Any) -> None:
            torch.zeros(2).exp()

        def entered(self, call: ModuleCall, args: Any) -> None:
            torch.zeros(2).exp()

        def left(self, call: ModuleCall, output: Any) -> None:
            torch.zeros(2).exp()

    first, second = Busy(), Busy()
    with watched(net, first, second):
        net(torch.zeros(2, 4))
    assert first.ops == second.ops == OPS


def test_what_runs_unseen_is_no_operation() -> None:
    net = Net()

    def hook(module: Any, args: Any, output: Tensor) -> None:
        assert ops_are_seen()
        with unseen():
            torch.zeros(2).exp()

    handle = net.fc.register_forward_hook(hook)
    with watched(net, Log()) as log:
        net(torch.zeros(2, 4))
    handle.remove()
    assert log.ops == OPS


def test_an_operation_that_raises_is_told_to_those_who_were_told_before() -> None:
    class Told(OpConsumer):
        def __init__(self) -> None:
            self.heard: list[Any] = []

        def failed(self, op: Op, function: Any, args: Any, kwargs: Any, error: Any) -> None:
            self.heard.append((op.address, type(error)))

    net = Net()
    with watched(net, Told()) as told, pytest.raises(RuntimeError, match="shapes cannot be"):
        net(torch.zeros(2, 3))
    assert told.heard == [("fc/linear#0", RuntimeError)]


# -- nobody else is disturbed -----------------------------------------------------------------


class Seen(TorchFunctionMode):
    """A mode of somebody else's."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("consumer", [Log, lambda: Replace("/add#0", lambda value: value * 2)])
def test_a_mode_around_the_call_sees_what_it_would_see_anyway(consumer: Any) -> None:
    net, x = Net(), torch.zeros(2, 4)
    with Seen() as alone:
        net(x)
    with watched(net, Log()), Seen() as inside:
        net(x)
    assert inside.names == alone.names
    with Seen() as around, watched(net, Log()):
        net(x)
    assert around.names == alone.names


class Entering(nn.Module):
    """Enters a mode in one hook or operation and leaves it in another."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.mode = Seen()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc(x) * 2
        return out


def test_modes_that_hooks_of_others_enter_and_leave_stay_theirs() -> None:
    # Pushed before ours and popped after it, or the other way round: both orders of hooks.
    for early in (True, False):
        model = Entering()
        log = Log()

        def enter(module: Any, args: Any, model: Entering = model) -> None:
            model.mode.__enter__()

        def leave(module: Any, args: Any, out: Any, model: Entering = model) -> None:
            assert torch._C._len_torch_function_stack() == 1
            assert torch._C._get_function_stack_at(0) is model.mode
            model.mode.__exit__(None, None, None)

        if early:
            model.register_forward_pre_hook(enter)
            model.register_forward_hook(leave)
        with Attachment(Owner("nethook.test")) as hooks:
            watch_ops(Tree(model), hooks, log)
            if not early:
                model.register_forward_pre_hook(enter)
                model.register_forward_hook(leave)
            model(torch.zeros(2, 4))
        assert log.ops == ["fc/linear#0", "/mul#0"]
        assert "mul" in model.mode.names


class Makes(nn.Module):
    """Makes tensors on devices that it does not name."""

    def __init__(self, *, sets: bool) -> None:
        super().__init__()
        self.sets = sets

    def forward(self, x: Tensor) -> list[Tensor]:
        with torch.device("cpu"):
            made = [torch.zeros(2)]
        if self.sets:
            torch.set_default_device("meta")
            made.append(torch.zeros(2))
            torch.set_default_device(None)
        return [*made, torch.zeros(2)]


def test_default_devices_stay_in_force() -> None:
    model, log = Makes(sets=True), Log()
    with watched(model, log):
        devices = [each.device.type for each in model(torch.zeros(2))]
    assert devices == ["cpu", "meta", "cpu"]
    model.sets = False
    with torch.device("meta"), watched(model, log):
        devices = [each.device.type for each in model(torch.zeros(2))]
        assert torch.zeros(1).device.type == "meta"
    assert torch.zeros(1).device.type == "cpu"
    assert devices == ["cpu", "meta"]
    assert log.ops == ["/zeros#0", "/zeros#1", "/zeros#2", "/zeros#0", "/zeros#1"]


def test_threads_see_their_own_calls_and_no_others() -> None:
    net, x = Net(), torch.zeros(2, 4)
    started, go = threading.Event(), threading.Event()
    counts: list[int] = []

    def elsewhere() -> None:
        started.wait()
        counts.append(torch._C._len_torch_function_stack())
        torch.zeros(2).exp()
        net.fc(x)
        counts.append(torch._C._len_torch_function_stack())
        go.set()

    def wait(module: Any, args: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            started.set()
            go.wait()

    handle = net.act.register_forward_pre_hook(wait)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    with watched(net, Log()) as log:
        net(x)
        thread.join()
    handle.remove()
    assert counts == [0, 0]
    assert sorted(log.ops) == sorted([*OPS, "fc/linear#0"])


def test_a_replica_counts_as_its_module_and_a_copy_does_not() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            replica = self.fc._replicate_for_data_parallel()
            replica.weight, replica.bias = self.fc.weight, self.fc.bias
            out: Tensor = copy.deepcopy(self.fc)(replica(x))
            return out

    model = Both()
    with watched(model, Log()) as log:
        model(torch.zeros(2, 4))
    assert [each for each in log.ops if "linear" in each] == ["fc/linear#0", "/linear#0"]


def test_a_fused_layer_stays_fused() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    model, x = nn.Sequential(layer, nn.Linear(8, 8)), torch.randn(2, 3, 8)
    with torch.no_grad():
        alone = model(x)
        with watched(model, Log()) as log:
            seen = model(x)
        assert torch.equal(seen, alone)
        assert log.ops == ["1/linear#0"]
        # Where it cannot run fused, its operations are seen.
        with Seen(), watched(model, Log()) as inside:
            model(x)
    assert "0/add#0" in inside.ops
    assert "0.linear1/linear#0" in inside.ops


# -- exceptions -------------------------------------------------------------------------------


class Raises(nn.Module):
    """Raises in the middle of a nested call, when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.error: BaseException | None = None

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.inner(x)
        if self.error is not None:
            raise self.error
        return h * 2


RAISED = ["inner.0/linear#0", "inner.1/relu#0"]


class Abrupt(BaseException):
    """Not an `Exception`: no hook of torch's is told of it."""


@pytest.mark.parametrize("kind", [ValueError, Abrupt])
@pytest.mark.parametrize("where", ["root", "hook", "op"])
def test_after_an_exception_the_next_call_is_seen_as_ever(
    kind: type[BaseException], where: str
) -> None:
    model, x = Raises(), torch.zeros(2, 4)

    class Throws(Log):
        armed = True

        def after(self, op: Op, *rest: Any) -> None:
            super().after(op, *rest)
            if where == "op" and self.armed and op.address == "inner.1/relu#0":
                raise kind

    def throw(*_: Any) -> None:
        raise kind

    if where == "root":
        model.error = kind()
    handle = model.inner.register_forward_hook(throw) if where == "hook" else None
    with watched(model, Throws()) as log, watched(model, Log()) as other:
        with pytest.raises(kind):
            model(x)
        model.error, log.armed = None, False
        if handle is not None:
            handle.remove()
        log.ops.clear()
        other.ops.clear()
        model(x)
        assert log.ops == other.ops == [*RAISED, "/mul#0"]
        assert torch._C._len_torch_function_stack() == 0


def test_after_an_abrupt_end_leaving_the_scope_leaves_nothing() -> None:
    model = Raises()
    model.error = Abrupt()
    with pytest.raises(Abrupt), watched(model, Log()):
        model(torch.zeros(2, 4))
    assert torch._C._len_torch_function_stack() == 0


def test_an_inner_scope_that_was_left_abruptly_frees_the_outer_one() -> None:
    model, x = Raises(), torch.zeros(2, 4)
    model.error = Abrupt()
    with watched(model, Log()) as outer:
        with pytest.raises(Abrupt), watched(model, Log()):
            model(x)
        assert torch._C._len_torch_function_stack() == 0
        torch.zeros(2).exp()
        model.error = None
        model(x)
    assert outer.ops == [*RAISED, *RAISED, "/mul#0"]


def test_a_module_that_calls_itself_has_counts_of_its_own_at_every_level() -> None:
    class Recursive(nn.Module):
        def forward(self, x: Tensor, depth: int) -> Tensor:
            x = x.exp()
            if depth:
                x = self(x, depth - 1)
            return x.exp()

    model = Recursive()
    with watched(model, Log()) as log:
        model(torch.zeros(2), 2)
    assert log.ops == ["/exp#0"] * 3 + ["/exp#1"] * 3


def test_what_is_attached_earlier_comes_first_also_where_it_begins_later() -> None:
    outer = nn.Sequential(Net())
    inner = outer[0]
    assert isinstance(inner, Net)
    order: list[str] = []

    def note(name: str) -> Callable[[Tensor], None]:
        return lambda value: order.append(name)

    with Attachment(Owner("nethook.test")) as hooks:
        watch_ops(Tree(inner), hooks, Replace("/relu#0", note("inner, attached first")))
        watch_ops(Tree(outer), hooks, Replace("0/relu#0", note("outer, attached last")))
        outer(torch.zeros(2, 4))
    assert order == ["inner, attached first", "outer, attached last"]


def test_nothing_stays_in_the_tables_of_torch() -> None:
    net = Net()
    with watched(net, Log()):
        net(torch.zeros(2, 4))
        assert len(module_hooks._global_forward_hooks_always_called) == 1
    assert not module_hooks._global_forward_hooks_always_called
    assert not module_hooks._global_forward_hooks_with_kwargs
    assert not module_hooks._global_forward_hooks
    assert not module_hooks._global_forward_pre_hooks


def test_what_is_shared_between_scopes_is_not_used_for_a_model_that_has_changed() -> None:
    model, x = nn.Sequential(nn.ReLU(), nn.Tanh()), torch.zeros(2)

    def addresses() -> list[str]:
        with nethook.trace(model, "**/*") as tape:
            model(x)
        return list(tape)

    assert addresses() == addresses() == ["0/relu#0", "1/tanh#0"]
    model[0], model[1] = model[1], model[0]
    assert addresses() == ["0/tanh#0", "1/relu#0"]
    model.append(model[0])
    assert addresses() == ["0/tanh#0", "1/relu#0"]
    with nethook.trace(model, "**/*") as tape:
        model(x)
    assert tape["2/tanh"] is tape["0/tanh#0"]
    model[1] = nn.Sigmoid()
    assert addresses() == ["0/tanh#0", "1/sigmoid#0"]


# -- audit and suspension ---------------------------------------------------------------------


def test_audit_lists_it_and_suspended_takes_it_off() -> None:
    net, x = Net(), torch.zeros(2, 4)
    before = nethook.audit(net)
    with watched(net, Log()) as log:
        kinds = [info.kind for info in nethook.audit(net).ours]
        assert kinds == ["global_forward_pre", "global_forward", "function", "function"]
        with nethook.suspended(net):
            net(x)
            assert log.ops == []
        with nethook.suspended(nn.Linear(2, 2)):
            net(x)
        assert log.ops == OPS
        net(x)
    assert log.ops == OPS * 2
    assert nethook.audit(net) == before


# -- checkpoints ------------------------------------------------------------------------------


class Checkpointed(nn.Module):
    """Checkpoints a part of its own forward, which is no module."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.reentrant = reentrant

    def part(self, x: Tensor) -> Tensor:
        h = torch.exp(self.fc(x.exp()))
        return h * h

    def forward(self, x: Tensor) -> Tensor:
        x = x.exp() * 0.5
        h: Tensor = checkpoint(self.part, x, use_reentrant=self.reentrant)
        h = checkpoint(self.part, h * 0.1, use_reentrant=self.reentrant)
        return h.exp()


FIRST = [
    "/exp#0", "/mul#0", "/exp#1", "fc/linear#0", "/exp#2", "/mul#1",
    "/mul#2", "/exp#3", "fc/linear#0", "/exp#4", "/mul#3", "/exp#5",
]  # fmt: skip


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_a_checkpoint_computes_again_has_the_same_addresses(reentrant: bool) -> None:
    class Passes(Log):
        def __init__(self) -> None:
            super().__init__()
            self.again: list[str] = []

        def after(self, op: Op, *rest: Any) -> None:
            (self.again if recomputing() else self.ops).append(op.address)

    model, x = Checkpointed(reentrant=reentrant), torch.randn(2, 4, requires_grad=True)
    first, second = Passes(), Passes()
    with watched(model, first, second):
        model(x).sum().backward()
    assert first.ops == second.ops == FIRST
    # The last block first; of each it may stop where nothing more is needed.
    last, before = FIRST[7:11], FIRST[2:6]
    assert first.again == second.again
    kept = 4 if reentrant else len(first.again) // 2
    assert first.again == last[:kept] + before[:kept]
    assert kept >= 3
    assert torch._C._len_torch_function_stack() == 0


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_change_is_made_again_where_a_checkpoint_computes_again(reentrant: bool) -> None:
    model, x = Checkpointed(reentrant=reentrant), torch.randn(2, 4)

    def gradients(change: bool) -> list[Tensor]:
        model.zero_grad()
        given = x.clone().requires_grad_()
        with watched(model, Replace("/exp#2", torch.sin)):
            if change:
                model(given).sum().backward()
        if not change:  # the same by hand, without a checkpoint
            h = given.exp() * 0.5
            h = model.fc(h.exp()).exp().sin()
            h = model.part(h * h * 0.1)
            h.exp().sum().backward()
        assert given.grad is not None
        return [given.grad, *(each.grad for each in model.parameters() if each.grad is not None)]

    for one, two in zip(gradients(True), gradients(False), strict=True):
        torch.testing.assert_close(one, two)


def test_a_backward_pass_inside_the_forward_computes_again_under_the_same_addresses() -> None:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Checkpointed(reentrant=False)

        def forward(self, x: Tensor) -> Tensor:
            (grad,) = torch.autograd.grad(self.inner(x).sum(), x)
            return grad.exp()

    model, x = Inner(), torch.randn(2, 4, requires_grad=True)
    log = Log()
    with watched(model, log):
        model(x)
    of_inner = [f"inner{each}" if each[0] == "/" else f"inner.{each}" for each in FIRST]
    again = log.ops[len(FIRST) + 1 : -2]
    assert log.ops[: len(FIRST)] == of_inner
    assert log.ops[len(FIRST)] == "/sum#0"
    assert set(again) <= set(of_inner[2:])
    assert again[:3] == of_inner[7:10]
    assert log.ops[-2:] == ["/grad#0", "/exp#0"]


def test_calls_of_another_thread_are_none_of_the_scopes() -> None:
    net = Net()
    hooks = Attachment(Owner("nethook.test"))
    log = Log()
    watch_ops(Tree(net), hooks, log)
    enter(hooks.owner, "own", net)
    thread = threading.Thread(target=lambda: net(torch.zeros(2, 4)))
    thread.start()
    thread.join()
    assert log.events == []
    net(torch.zeros(2, 4))
    assert log.ops == OPS
    leave(hooks.owner)
    hooks.remove()


def test_a_scope_that_is_suspended_sees_nothing() -> None:
    net = Net()
    with watched(net, Log()) as log:
        with nethook.suspended(net):
            net(torch.zeros(2, 4))
        assert log.events == []
        net(torch.zeros(2, 4))
    assert log.ops == OPS


def test_a_compiled_model_is_left_whole() -> None:
    net = Net()
    x = torch.ones(2, 4)
    expected = net(x)
    torch._dynamo.reset()
    with watched(net, Log()) as log:
        # Torch would warn of global hooks, and warnings are errors.
        found = torch.compile(net, backend="eager", fullgraph=True)(x)
    torch._dynamo.reset()
    assert torch.equal(found, expected)
    assert log.ops == []


@pytest.mark.parametrize(
    ("training", "fast", "frozen", "given", "grad", "fused"),
    [
        (False, True, False, False, False, True),
        (True, True, False, False, False, False),  # training never runs fused
        (False, False, False, False, False, False),  # nor where the user has said so
        (False, True, False, False, True, False),  # nor where the weights need a gradient
        (False, True, True, False, True, True),
        (False, True, True, True, True, False),  # or the input does
    ],
)
def test_layers_that_run_fused_go_on_doing_so(
    training: bool, fast: bool, frozen: bool, given: bool, grad: bool, fused: bool
) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    layer.train(training).requires_grad_(not frozen)
    x = torch.randn(2, 3, 8, requires_grad=given)
    torch.backends.mha.set_fastpath_enabled(fast)
    try:
        with torch.set_grad_enabled(grad):
            bare = layer(x)
            with watched(layer, Log()) as log:
                out = layer(x)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert torch.equal(out, bare)
    assert (log.ops == []) is fused
