"""Tracing operations: whatever a trace does at a module, at `module/op#k`."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import nethook
from nethook.errors import (
    NoGradientError,
    NoSuchSiteError,
    NotAskedError,
    NotRunError,
    OverwrittenError,
    PatternError,
    SeveralCallsError,
)


class Block(nn.Module):
    """A residual block with functional operations."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(4, 4)
        self.fc2 = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.fc1(x))
        h = F.relu(self.fc2(h))
        return x + h


class Net(nn.Module):
    """Two blocks, and operations of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer1 = Block()
        self.layer2 = Block()

    def forward(self, x: Tensor, scale: float = 2.0) -> Tensor:
        h = torch.mul(self.layer1(x), other=scale)
        h = self.layer2(h)
        h += 1
        values, _ = torch.max(h, dim=-1)
        return values.softmax(0)


def by_hand(net: Net, x: Tensor) -> dict[str, Tensor]:
    """The same forward, written out, with every value kept."""
    kept: dict[str, Tensor] = {}

    def note(name: str, value: Tensor) -> Tensor:
        kept[name] = value.detach().clone()
        if value.requires_grad:
            value.register_hook(lambda grad: kept.update({f"grad of {name}": grad.clone()}))
        return value

    def block(block: Block, name: str, x: Tensor) -> Tensor:
        h = note(f"{name}/relu#0", F.relu(block.fc1(x)))
        h = note(f"{name}/relu#1", F.relu(block.fc2(h)))
        return note(f"{name}/add#0", x + h)

    h = note("/mul#0", block(net.layer1, "layer1", x) * 2.0)
    h = block(net.layer2, "layer2", h)
    h = note("/add#0", h + 1)
    h = note("/softmax#0", h.max(dim=-1)[0].softmax(0))
    (h * torch.arange(3.0)).sum().backward()
    return kept


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def x() -> Tensor:
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(1))


def run(net: nn.Module, x: Tensor) -> Tensor:
    out: Tensor = net(x)
    (out * torch.arange(3.0)).sum().backward()
    return out


def test_values_and_gradients_are_those_of_the_forward_written_out(net: Net, x: Tensor) -> None:
    expected = by_hand(net, x)
    with nethook.trace(net, "**/{relu,add,mul,softmax}", grads=True) as tape:
        run(net, x)
    names = [each for each in expected if not each.startswith("grad")]
    assert sorted(tape) == sorted(names)
    for name in names:
        assert torch.equal(tape[name].output, expected[name]), name
        assert torch.equal(tape[name].grad, expected[f"grad of {name}"]), name


def test_records_of_operations_come_after_modules_in_order_of_execution(
    net: Net, x: Tensor
) -> None:
    with nethook.trace(net, "**/{relu,add}", "layer2", "layer1.fc1") as tape:
        net(x)
    assert list(tape) == [
        "layer1.fc1", "layer2", "layer1/relu#0", "layer1/relu#1", "layer1/add#0", "layer2/relu#0",
        "layer2/relu#1", "layer2/add#0", "/add#0",
    ]  # fmt: skip


def test_inputs_are_kept_as_they_were(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "/mul#0", "/add#0", "/max", inputs=True) as tape:
        net(x)
    assert tape["/mul#0"].kwargs == {"other": 2.0}
    assert torch.equal(tape["/mul#0"].output, tape["/mul#0"].input * 2)
    added = tape["/add#0"]
    assert torch.equal(added.output, added.args[0] + 1)  # the write in place has not reached it
    assert added.args[1] == 1
    assert type(tape["/max"].output).__name__ == "max"


def test_input_gradients(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "layer2/add#0", "layer2/relu#1", input_grads=True, grads=True) as tape:
        run(net, x)
    added = tape["layer2/add#0"]
    # The second operand is used once, so its gradient is that of the sum.
    assert torch.equal(added.input_grads[1], added.grad)
    assert torch.equal(added.input_grads[1], tape["layer2/relu#1"].grad)


def test_options_apply(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "/mul", dtype=torch.float64, transform=lambda t: t.sum()) as tape:
        net(x)
        net(x)
    assert [call.output.shape for call in tape["/mul"].calls] == [(), ()]
    assert tape["/mul"].last.output.dtype is torch.float64
    with nethook.trace(net, "/mul", detach=False) as tape:
        out = net(x)
    (grad,) = torch.autograd.grad(out[0], tape["/mul"].output)
    assert grad.shape == (3, 4)


def test_a_transform_runs_unseen_at_modules_as_well(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "**", "**/*", transform=lambda t: t.exp().sum()) as tape:
        net(x)
    with nethook.trace(net, "**/*") as alone:
        net(x)
    assert [each for each in tape if "/" in each] == list(alone)


@pytest.mark.parametrize("calls", ["last", 2])
def test_only_the_latest_calls_are_kept_where_asked(net: Net, x: Tensor, calls: Any) -> None:
    with nethook.trace(net, "**/relu", calls=calls) as tape:
        for _ in range(3):
            net(x)
    record = tape["layer1/relu#1"]
    assert (len(record.calls), record.total) == (1 if calls == "last" else 2, 3)
    assert record.last.forward == 2


def test_lazy_copies_and_references(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "layer2/add") as tape:
        net(x)
    kept = tape["layer2/add"].output
    with nethook.trace(net, "layer2/add", "/add", copy=False) as tape:
        net(x)
    with pytest.raises(OverwrittenError, match=r"'layer2/add#0' was captured by reference"):
        tape["layer2/add"].output
    assert torch.equal(tape["/add"].output, kept + 1)


def test_calls_over_forwards(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "**/relu") as tape:
        net(x)
        net(x * 2)
        net.layer1(x)
    record = tape["layer1/relu#0"]
    assert [call.forward for call in record.calls] == [0, 1, None]
    assert record.calls.stack().shape == (3, 3, 4)
    with pytest.raises(SeveralCallsError, match=r"'layer1/relu#0' was called 3 times"):
        record.output


def test_the_same_module_called_twice_is_two_calls() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = Block()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.block(self.block(x))
            return out

    model = Twice()
    with nethook.trace(model, "**/add") as tape:
        model(torch.zeros(2, 4))
    assert list(tape) == ["block/add#0"]
    assert len(tape["block/add"].calls) == 2


# -- reading by name --------------------------------------------------------------------------


def test_the_only_one_is_found_without_its_number(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "**/*") as tape:
        net(x)
    assert tape["/mul"] is tape["/mul#0"]
    assert "/mul" in tape
    assert "layer1/relu" in tape
    assert "/exp" not in tape
    with pytest.raises(
        NoSuchSiteError,
        match=r"'layer1/relu' means 2 operations: 'layer1/relu#0', 'layer1/relu#1'. Name one",
    ):
        tape["layer1/relu"]
    with pytest.raises(PatternError, match="is not the address of an operation"):
        tape["layer1/"]


def test_every_name_of_a_shared_module_finds_it(x: Tensor) -> None:
    model = nn.ModuleDict({"a": Block()})
    model["b"] = model["a"]
    with nethook.trace(model, "b/relu#0", "b/add") as tape:
        model["a"](x)
    assert tape["a/relu#0"] is tape["b/relu#0"]
    assert tape["b/add"] is tape["a/add#0"]


def test_wrappers_are_transparent(net: Net, x: Tensor) -> None:
    wrapped = nn.DataParallel(net)
    with nethook.trace(wrapped, "layer1/add", "module.layer2/add") as tape:
        wrapped(x)
    assert list(tape) == ["layer1/add#0", "layer2/add#0"]
    assert tape["module.layer1/add#0"] is tape["layer1/add"]


def test_odd_names_are_escaped() -> None:
    model = nn.ModuleDict({"a/b#*": Block()})
    with nethook.trace(model, r"a\/b\#\*/add") as tape:
        model["a/b#*"](torch.zeros(2, 4))
    assert list(tape) == [r"a\/b\#\*/add#0"]
    assert tape[r"a\/b\#\*/add"].total == 1


# -- what cannot be read ----------------------------------------------------------------------


def test_what_never_ran_says_what_its_module_has_had(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "layer1/relu#2", "layer2/tanh", "**/exp") as tape:
        net(x)
    had = r"'layer1' has had 'layer1/relu#0', 'layer1/relu#1', 'layer1/add#0'\."
    with pytest.raises(NotRunError, match=rf"'layer1/relu#2' has not run in this scope: {had}"):
        tape["layer1/relu#2"].output
    with pytest.raises(NotRunError, match=r"'layer2/tanh' has not run in this scope: 'layer2' has"):
        tape["layer2/tanh"]
    with pytest.raises(NotRunError, match=r"'\*\*/exp' has not run .*: no module has had such an"):
        tape["**/exp"]
    with pytest.raises(NotRunError, match=r"'layer1/exp' has not run .*: 'layer1' has had"):
        tape["layer1/exp"]
    with pytest.raises(NoSuchSiteError, match=r"the site 'layer1/add' was not traced\. Closest:"):
        tape["layer1/add"]
    assert "layer1/relu#2  op" in repr(tape)
    assert "not called" in repr(tape)


def test_a_module_that_has_not_been_called_says_so(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "layer2/relu#0", "layer2/add") as tape:
        net.layer1(x)
    for name in ("layer2/relu#0", "layer2/add"):
        with pytest.raises(NotRunError, match="the module 'layer2' has not been called in it"):
            tape[name].output


def test_a_module_without_operations_says_so(x: Tensor) -> None:
    model = nn.Sequential(nn.Identity())
    with nethook.trace(model, "0/relu#0") as tape:
        model(x)
    with pytest.raises(NotRunError, match="'0' was called, and has no operation of its own"):
        tape["0/relu#0"].output


@pytest.mark.parametrize(
    ("model", "asked", "nearest"),
    [
        (nn.MultiheadAttention(4, 2), "/softmax#0", "/multi_head_attention_forward#0"),
        (nn.MultiheadAttention(4, 2), "/linear#0", "/multi_head_attention_forward#0"),
        (nn.LSTM(4, 4), "/sigmoid#0", "/lstm#0"),
        (nn.LayerNorm(4), "/rsqrt#0", "/layer_norm#0"),
        (nn.CrossEntropyLoss(), "/log_softmax#0", "/cross_entropy#0"),
    ],
)
def test_what_a_composite_function_has_swallowed_is_said(
    model: nn.Module, asked: str, nearest: str
) -> None:
    x = torch.randn(3, 4)
    given = {nn.MultiheadAttention: 3, nn.CrossEntropyLoss: 2}.get(type(model), 1)
    with nethook.trace(model, asked) as tape:
        model(*[x] * given)
    name = nearest[1:-2]
    expected = f"inside {name} has no address, and nearest to it is '{nearest}'"
    with pytest.raises(NotRunError, match=expected):
        tape[asked].output


def test_a_fused_layer_says_so() -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    with torch.no_grad(), nethook.trace(model, "/add") as tape:
        model(torch.randn(2, 3, 8))
    with pytest.raises(NotRunError, match=r"'' runs as one fused kernel .*set_fastpath_enabled"):
        tape["/add"]


def test_a_module_of_which_there_is_none(net: Net) -> None:
    with pytest.raises(NoSuchSiteError, match="no module matches 'layer3'"):
        with nethook.trace(net, "layer3/relu"):
            pass
    assert nethook.audit(net).ours == ()


def test_what_was_not_asked_for(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "/mul") as tape:
        net(x)
    with pytest.raises(NotAskedError, match="the inputs of '/mul#0' were not recorded"):
        tape["/mul"].input
    with nethook.trace(net, "/mul", grads=True) as tape, torch.no_grad():
        net(x)
    with pytest.raises(NoGradientError, match="of '/mul#0' did not require a gradient"):
        tape["/mul"].grad


def test_an_operation_that_raised_has_its_inputs(net: Net) -> None:
    with nethook.trace(net, "**/linear", inputs=True) as tape, pytest.raises(RuntimeError):
        net(torch.zeros(2, 3))
    record = tape["layer1.fc1/linear"]
    assert record.args[0].shape == (2, 3)
    with pytest.raises(NotRunError, match=r"'layer1\.fc1/linear#0' raised an exception before"):
        record.output


def test_what_a_checkpoint_computes_again_is_not_recorded_again(x: Tensor) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = Block()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = checkpoint(lambda h: self.block(h).exp(), x, use_reentrant=False)
            return out

    model = Checkpointed()
    with nethook.trace(model, "**/*", grads=True) as tape:
        model(x.requires_grad_()).sum().backward()
    assert {name: record.total for name, record in tape.items()} == dict.fromkeys(
        ["block.fc1/linear#0", "block/relu#0", "block.fc2/linear#0", "block/relu#1", "block/add#0",
         "/exp#0"], 1,
    )  # fmt: skip
    assert torch.equal(tape["/exp"].grad, torch.ones(3, 4))


def test_inside_a_transform_nothing_is_kept() -> None:
    class Mapped(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.vmap(torch.exp)(x) * 2

    model = Mapped()
    for options in ({}, {"inputs": True}):
        with nethook.trace(model, "**/*", **options) as tape:
            model(torch.zeros(3))
        assert tape["/mul"].total == 1
        with pytest.raises(NotRunError, match=r"'/exp#0' was called, but inside a torch.func"):
            tape["/exp"].output


# -- early stop -------------------------------------------------------------------------------


def test_a_forward_stops_at_a_named_operation(net: Net, x: Tensor) -> None:
    ran: list[str] = []
    net.layer2.register_forward_hook(lambda *_: ran.append("layer2"))
    with nethook.trace(net, "/mul#0", "layer1.fc1", stop=True) as tape:
        net(x)
        ran.append("not reached")
    assert tape.stopped
    assert ran == []
    assert torch.equal(tape["/mul"].output, net.layer1(x) * 2)
    assert torch._C._len_torch_function_stack() == 0


def test_where_a_pattern_ends_is_learnt_from_a_whole_forward(net: Net, x: Tensor) -> None:
    for expected in (False, True, True):
        with nethook.trace(net, "layer1/relu", "layer1.fc1", stop=True) as tape:
            net(x)
        assert tape.stopped is expected
        assert list(tape) == ["layer1.fc1", "layer1/relu#0", "layer1/relu#1"]


def test_a_number_in_every_module_is_more_than_one_site(net: Net, x: Tensor) -> None:
    for expected in (False, True):
        with nethook.trace(net, "**/relu#0", stop=True) as tape:
            net(x)
        assert tape.stopped is expected
        assert list(tape) == ["layer1/relu#0", "layer2/relu#0"]


def test_after_a_stop_inside_another_trace_that_one_goes_on(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "**/add") as outer:
        with nethook.trace(net, "/mul#0", stop=True):
            net(x)
        assert torch._C._len_torch_function_stack() == 0
        net(x)
    assert {name: record.total for name, record in outer.items()} == {
        "layer1/add#0": 2, "layer2/add#0": 1, "/add#0": 1,
    }  # fmt: skip


# -- the tape as a whole ----------------------------------------------------------------------


def test_a_tape_prints_operations(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "layer1", "/mul") as tape:
        net(x)
    assert repr(tape) == (
        "tape of 2 sites, 1 forward, 96 B\n"
        "address  type   calls  output  dtype    memory\n"
        "───────  ─────  ─────  ──────  ───────  ──────\n"
        "layer1   Block      1  (3, 4)  float32    48 B\n"
        "/mul#0   op         1  (3, 4)  float32    48 B"
    )
    assert "/mul#0" in tape._repr_html_()
    assert repr(tape["/mul"]) == "<record '/mul#0' (op): 1 call, last (3, 4)>"


def test_clear_forgets_operations_too(net: Net, x: Tensor) -> None:
    with nethook.trace(net, "/mul") as tape:
        net(x)
        tape.clear()
        net(x)
        assert tape["/mul"].total == 1
        net(x)
    assert tape["/mul"].total == 2
    assert tape.memory == 2 * 48


def test_no_model_and_no_graph_is_kept_alive(x: Tensor) -> None:
    net = Net()
    with nethook.trace(net, "**/*", inputs=True, grads=True, input_grads=True) as tape:
        given = x.clone().requires_grad_()
        out = net(given)
    leaf, model = weakref.ref(given), weakref.ref(net)
    del out, net, given
    gc.collect()
    assert model() is None
    assert leaf() is None  # which its graph would hold
    assert len(tape) > 5


# -- addresses stay ---------------------------------------------------------------------------


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize(
    ("patterns", "options"),
    [
        (("**/*",), {}),
        (("**/*", "**"), {"inputs": True, "grads": True, "input_grads": True}),
        (("**/*",), {"copy": True, "calls": 1}),
        (("**", "**/*"), {"transform": torch.exp}),
    ],
)
def test_addresses_do_not_depend_on_what_else_is_traced_or_changed(
    net: Net, x: Tensor, train: bool, patterns: tuple[str, ...], options: dict[str, Any]
) -> None:
    net.train(train)
    with nethook.trace(net, "**/*") as alone:
        net(x)
    callbacks = nethook.Callbacks(net)
    callbacks.after("layer1")(lambda value: value.exp().log())
    callbacks.before("layer2")(lambda given: given[0] * 1)
    callbacks.on_grad("layer1.fc1")(lambda grad: grad * 2)
    changes = {
        "outputs": {"layer1.fc1": lambda value: value + 1, "layer1/relu#0": lambda v: v * 2 + 1},
        "grads": {"layer1": nethook.edits.scale(2.0)},
        "input_grads": {"layer2": nethook.edits.scale(2.0)},
    }
    with nethook.edit(net, **changes), callbacks, nethook.trace(net, *patterns, **options) as tape:
        run(net, x)
    assert [each for each in tape if "/" in each] == list(alone)
