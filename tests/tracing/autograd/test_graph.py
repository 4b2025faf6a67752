"""`autograd_graph`: the nodes behind a tensor against torch's own walk, and who made them."""

import gc
import json
import threading
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import nethook
from nethook.errors import InputsError, NoGradientError, OptionError


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), Block(4), Block(4), nn.Linear(4, 2))


def reachable(tensor: torch.Tensor) -> set[object]:
    """Torch's own edges, followed by hand."""
    found, waiting = set(), [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [before for before, _ in node.next_functions]
    return found


def test_every_node_is_listed_once_in_an_order_that_backward_could_run(model) -> None:
    loss = model(torch.randn(5, 3)).square().mean()
    graph = nethook.autograd_graph(loss)
    assert len(graph) == len(reachable(loss))
    assert graph.roots == (0,)
    assert all(before > node.index for node in graph for before in node.inputs)
    assert [node.index for node in graph] == list(range(len(graph)))

    ran = []
    nodes = reachable(loss)
    for node in nodes:
        node.register_prehook(lambda grads, node=node: ran.append(node.name()))
    loss.backward()
    assert [node.name for node in graph] == [name.rpartition("::")[2] for name in ran]


def test_nodes_say_what_they_made_and_where_gradients_go(model) -> None:
    out = model(torch.randn(5, 3))
    first = nethook.autograd_graph(out, model=model)[0]
    assert (first.name, first.shapes, first.dtypes) == ("AddmmBackward0", ((5, 2),), ("float32",))
    leaves = [node.leaf for node in nethook.autograd_graph(out, model=model) if node.leaf]
    assert sorted(leaves) == sorted(name for name, _ in model.named_parameters())
    unnamed = {node.leaf for node in nethook.autograd_graph(out) if node.leaf}
    assert unnamed == {"input"}


def test_a_tape_tells_which_call_made_each_node(model) -> None:
    """The judge: hooks by hand that note the nodes behind each module's output and input."""
    x = torch.randn(5, 3, requires_grad=True)
    behind: dict[str, set[object]] = {}
    handles = [
        module.register_forward_hook(
            lambda _, args, out, name=name: behind.__setitem__(
                name, reachable(out) - (reachable(args[0]) if args[0].grad_fn else set())
            )
        )
        for name, module in model.named_modules()
    ]
    with nethook.trace(model, "", "**", nodes=True) as tape:
        out = model(x)
        loss = F.cross_entropy(out, torch.tensor([0, 1, 0, 1, 0]))
    for handle in handles:
        handle.remove()
    graph = nethook.autograd_graph(loss, tape=tape)
    # The smallest set of nodes between a module's input and output that a node is in.
    owners = sorted(behind.items(), key=lambda item: len(item[1]))
    expected: dict[str, list[str | None]] = {}
    for node in reachable(loss):
        if node.name().endswith("AccumulateGrad"):
            continue
        owner = next((name for name, nodes in owners if node in nodes), None)
        expected.setdefault(node.name(), []).append(owner)
    found: dict[str, list[str | None]] = {}
    for each in graph:
        if each.leaf is None:
            found.setdefault(each.name, []).append(each.address)
    assert {name: sorted(map(str, who)) for name, who in found.items()} == {
        name: sorted(map(str, who)) for name, who in expected.items()
    }
    assert {each.leaf for each in graph} >= {"0.weight", "2.up.bias"}  # named without model=


def test_calls_of_one_module_are_told_apart() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x):
            return self.fc(torch.tanh(self.fc(x)))

    model = Twice()
    with nethook.trace(model, "fc", nodes=True) as tape:
        out = model(torch.randn(2, 3))
    calls = [node.call for node in nethook.autograd_graph(out, tape=tape).find("Addmm*")]
    assert calls == [1, 0]


def test_nodes_of_another_time_or_another_thread_are_nobodys(model) -> None:
    before = torch.ones(5, 3, requires_grad=True) * 2
    with nethook.trace(model, nodes=True) as tape:
        out = model(before)
    graph = nethook.autograd_graph(out + 1, tape=tape)
    assert graph[0].address is None
    assert graph.find("Mul*")[0].address is None

    with nethook.trace(model, nodes=True, threads="all") as tape:
        out = model(torch.randn(5, 3))
        thread = threading.Thread(target=lambda: model(torch.randn(5, 3)))
        thread.start()
        thread.join()
    assert {node.address for node in nethook.autograd_graph(out, tape=tape)} == {None}


def test_several_tensors_nodes_and_edges_are_taken(model) -> None:
    out = model(torch.randn(5, 3))
    both = nethook.autograd_graph({"a": out.sum(), "b": (out.mean(), torch.ones(1))})
    assert len(both.roots) == 2
    assert both.find("Sum*")
    assert both.find("Mean*")
    assert nethook.autograd_graph(out.grad_fn).nodes == nethook.autograd_graph(out).nodes
    edge = torch.autograd.graph.get_gradient_edge(out)
    assert nethook.autograd_graph(edge).nodes == nethook.autograd_graph(out).nodes
    leaf = nn.Parameter(torch.ones(2))
    assert [node.leaf for node in nethook.autograd_graph(leaf)] == ["input"]


def test_python_functions_checkpoints_and_loops_are_walked() -> None:
    block = nn.Linear(3, 3)
    x = torch.randn(2, 3, requires_grad=True)
    out = checkpoint(block, x, use_reentrant=True)
    names = [node.name for node in nethook.autograd_graph(out)]
    assert names == ["CheckpointFunctionBackward", "AccumulateGrad"]
    hidden = torch.zeros(2, 3)
    for _ in range(3000):  # deep: no recursion
        hidden = torch.tanh(hidden + x)
    graph = nethook.autograd_graph(hidden)
    assert len(graph) == 6001
    text = repr(graph)
    assert "… 5,920 more" in text
    assert len(text.splitlines()) < 90
    assert len(graph.tree().splitlines()) > 6000


def test_it_holds_plain_data_alone(model) -> None:
    loss = model(torch.randn(5, 3)).square().mean()
    graph = nethook.autograd_graph(loss, model=model)
    saved = weakref.ref(loss)
    del loss
    gc.collect()
    assert saved() is None
    again = json.loads(json.dumps(graph.to_dict()))
    assert again["nodes"][2]["name"] == "AddmmBackward0"
    assert again["nodes"][2]["shapes"] == [[5, 2]]
    with pytest.raises(AttributeError):
        graph.nodes = ()


def test_what_has_no_graph_is_refused(model) -> None:
    with torch.no_grad():
        out = model(torch.randn(5, 3))
    with pytest.raises(NoGradientError) as none:
        nethook.autograd_graph(out)
    assert str(none.value) == (
        "there is no graph behind this tensor: it does not require a gradient. It was computed "
        "under no_grad or inference_mode, was detached, or nothing before it requires one."
    )
    with pytest.raises(InputsError) as wrong:
        nethook.autograd_graph("loss")
    assert str(wrong.value) == (
        "`tensor` must be a tensor, a nested value of tensors, or a node such as "
        "tensor.grad_fn; got str."
    )
    with nethook.trace(model) as tape:
        out = model(torch.randn(5, 3))
    with pytest.raises(OptionError) as plain:
        nethook.autograd_graph(out, tape=tape)
    assert str(plain.value) == "`tape` must hold nodes; got one without. Trace with nodes=True."


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=25))
def test_every_node_of_any_graph_is_drawn_once(edges: list[tuple[int, int]]) -> None:
    made = [torch.ones(1, requires_grad=True) * 1]
    for one, other in edges:
        made.append(made[one % len(made)] + made[other % len(made)])
    graph = nethook.autograd_graph(made[-1])
    text = graph.tree()
    # One step to a leaf, beside other ways, is written beside the node that it leads from.
    steps = {node.index for node in graph if [graph[at].leaf for at in node.inputs] == ["input"]}
    beside = {at for node in graph if len(set(node.inputs)) > 1 for at in node.inputs} & steps
    for node in graph:
        if node.leaf is None and node.index not in beside:
            rows = [row for row in text.splitlines() if f"{node.name} #{node.index} " in row + " "]
            assert len([row for row in rows if "↑" not in row]) == 1


def test_every_node_of_a_forward_was_made_by_an_operation() -> None:
    """The data flow from the loss back: each node lies at the address of an operation."""
    from tests.tracing.architectures import gpt2

    model, inputs = gpt2()
    with nethook.trace(model, "**/*", nodes=True) as tape:
        out = model.train()(**inputs)
    graph = nethook.autograd_graph(out.logits, tape=tape)
    made = [node for node in graph if node.leaf is None]
    assert len(made) > 80
    assert [node for node in made if node.address is None] == []
    kinds = {node.name.removesuffix("Backward0").lower(): node.address for node in made}
    assert kinds["nativelayernorm"].partition("/")[2] == "layer_norm#0"
    assert kinds["embedding"].partition("/")[2] == "embedding#0"
    first = nethook.autograd_graph(tape["transformer.h.0.mlp.act/tanh#0"].node, tape=tape)
    assert first[0].address == "transformer.h.0.mlp.act/tanh#0"


def test_an_operation_is_inside_its_module(model) -> None:
    with nethook.trace(model, "", "**", "**/*", nodes=True) as tape:
        out = model(torch.randn(5, 3))
    addresses = [node.address for node in nethook.autograd_graph(out, tape=tape) if not node.leaf]
    assert {each for each in addresses if "relu" in each} == {"1/relu#0", "2/relu#0"}
    assert all("/" in each for each in addresses)
