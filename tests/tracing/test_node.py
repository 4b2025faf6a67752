"""`tape[...].node`: the autograd node that made an output, and how long it keeps a graph alive."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import NoGradientError, NotAskedError, SeveralCallsError
from tests.tracing.zoo_runs import bare, every_module, hooks_of
from tests.zoo import Exhibit, assert_same, observe
from tests.zoo.marks import every_exhibit


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.relu, self.fc2 = nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 3)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Net()


def test_it_is_the_node_that_made_the_output_also_where_that_is_written_later(model) -> None:
    seen = []
    model.fc1.register_forward_hook(lambda module, args, out: seen.append(out.grad_fn))
    with nethook.trace(model, nodes=True) as tape:
        out = model(torch.randn(2, 4))
    assert tape["fc1"].node is seen[0]
    assert tape["fc1"].node.name() == "AddmmBackward0"
    assert tape["relu"].node.name() == "ReluBackward0"
    assert tape["fc2"].last.node is out.grad_fn


def test_nested_outputs_hold_a_node_for_each_tensor() -> None:
    lstm = nn.LSTM(3, 4)
    with nethook.trace(lstm, "", nodes=True) as tape:
        output, (hidden, cell) = lstm(torch.randn(5, 2, 3))
    made, (made_hidden, made_cell) = tape[""].node
    expected = [output.grad_fn, hidden.grad_fn, cell.grad_fn]
    assert [made, made_hidden, made_cell] == expected

    class Mixed(nn.Module):
        def forward(self, x):
            return {"counted": torch.arange(3), "scaled": x * 2, "n": 3}

    with nethook.trace(Mixed(), "", nodes=True) as tape:
        (mixed := Mixed())(torch.ones(1))
    with nethook.trace(mixed, "", nodes=True) as tape:
        out = mixed(torch.ones(1, requires_grad=True))
    assert tape[""].node == {"counted": None, "scaled": out["scaled"].grad_fn, "n": 3}


def test_several_calls_have_several_nodes(model) -> None:
    with nethook.trace(model, "fc1", nodes=True) as tape:
        model(torch.randn(2, 4))
        model(torch.randn(2, 4))
    with pytest.raises(SeveralCallsError):
        _ = tape["fc1"].node
    assert len({call.node for call in tape["fc1"].calls}) == 2


def test_what_cannot_be_read_says_why(model) -> None:
    with nethook.trace(model, "fc1") as tape:
        model(torch.randn(2, 4))
    with pytest.raises(NotAskedError) as asked:
        _ = tape["fc1"].node
    assert str(asked.value) == (
        "the autograd nodes of 'fc1' were not recorded: trace with nodes=True."
    )
    with nethook.trace(model, "fc1", nodes=True) as tape, torch.no_grad():
        model(torch.randn(2, 4))
    with pytest.raises(NoGradientError) as none:
        _ = tape["fc1"].node
    assert str(none.value) == (
        "no autograd node made the output of 'fc1': it did not require a gradient when it ran."
    )


@pytest.mark.parametrize("nodes", [False, True])
def test_a_graph_lives_as_long_as_a_tape_that_was_asked_for_nodes(model, nodes: bool) -> None:
    """What a graph saved for backward is seen through the input of a layer, which it saves."""

    def run() -> tuple[nethook.tracing.tape.tape.Tape, weakref.ref[object]]:
        x = torch.randn(2, 4)
        saved = weakref.ref(x.untyped_storage())
        with nethook.trace(model, "fc1", nodes=nodes, copy=True) as tape:
            model(x)
        return tape, saved

    tape, saved = run()
    gc.collect()
    assert (saved() is not None) is nodes
    tape.clear()
    gc.collect()
    assert saved() is None


def test_after_backward_a_node_holds_nothing_that_was_saved(model) -> None:
    with nethook.trace(model, "fc1", nodes=True) as tape:
        model(torch.randn(2, 4)).sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        _ = tape["fc1"].node._saved_mat1


def test_a_node_takes_hooks_of_the_users(model) -> None:
    seen = []
    with nethook.trace(model, "fc2", nodes=True) as tape:
        loss = model(torch.randn(2, 4)).sum()
    tape["fc2"].node.register_prehook(lambda grads: seen.append(grads[0].shape))
    loss.backward()
    assert seen == [torch.Size([2, 3])]


@every_exhibit
def test_recording_nodes_changes_nothing(exhibit: Exhibit) -> None:
    @contextmanager
    def traced(model: nn.Module) -> Iterator[None]:
        with nethook.trace(model, every_module, nodes=True, copy=True):
            yield

    assert_same(bare(exhibit), observe(exhibit, around=traced, audit=hooks_of), "traced")
