"""The graph of one forward."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.errors import InitError
from nethook.init.dataflow.recorder import Flow, Node, mean_square, record


class Net(nn.Module):
    """Calls a function with itself and its input."""

    def __init__(self, forward: object, **layers: object) -> None:
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)
        self.call = forward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.call(self, x)  # type: ignore[operator]


def flow_of(forward: object, x: torch.Tensor | None = None, **layers: object) -> Flow:
    x = torch.randn(5, 4) if x is None else x
    return record(Net(forward, **layers), nethook.inputs(x))


def named(flow: Flow, op: str) -> list[Node]:
    return [node for node in flow.nodes if node.op == op]


def test_a_value_is_an_edge_from_what_made_it_to_what_uses_it() -> None:
    flow = flow_of(lambda net, x: torch.tanh(net.fc(x)) + x, fc=nn.Linear(4, 4))
    (given,), (linear,) = named(flow, "input"), named(flow, "linear")
    (tanh,), (add,) = named(flow, "tanh"), named(flow, "add")
    assert linear.parents == (given.index,)
    assert tanh.parents == (linear.index,)
    assert add.parents == (tanh.index, given.index)
    assert [flow.parameters[use.index].address for use in linear.params] == [
        "fc.weight", "fc.bias",
    ]  # fmt: skip
    assert linear.shape == (5, 4)
    assert linear.numel == 20


def test_scales_are_measured_on_the_way() -> None:
    x = torch.randn(50, 4, dtype=torch.float64)
    flow = flow_of(lambda net, x: (x * 3).relu(), x)
    (relu,) = named(flow, "relu")
    assert relu.mean_square == pytest.approx(float((3 * x).relu().square().mean()))


def test_transposed_and_partial_parameters() -> None:
    weight = nn.Parameter(torch.randn(4, 4))
    flow = flow_of(lambda net, x: x @ net.w.T + x @ net.w[:, :2].repeat(1, 2), w=weight)
    (use,) = named(flow, "matmul")[0].params
    assert use.transposed
    assert use.whole
    parts = [use for node in flow.nodes for use in node.params if not use.whole]
    assert parts


def test_what_is_computed_from_parameters_alone_is_derived() -> None:
    weight = nn.Parameter(torch.randn(4, 4))
    flow = flow_of(lambda net, x: F.linear(x, net.w * 2), w=weight)
    (double,), (linear,) = named(flow, "mul"), named(flow, "linear")
    assert double.derived == {0}
    assert not linear.derived
    assert linear.params == ()


def test_a_tied_parameter_is_one() -> None:
    first = nn.Linear(4, 4, bias=False)
    second = nn.Linear(4, 4, bias=False)
    second.weight = first.weight
    flow = flow_of(lambda net, x: net.b(net.a(x)), a=first, b=second)
    assert len(flow.parameters) == 1
    assert [node.params[0].index for node in named(flow, "linear")] == [0, 0]


def test_only_modules_that_ran_are_called() -> None:
    net = Net(lambda net, x: net.a(x), a=nn.Linear(4, 4), b=nn.Linear(4, 4))
    flow = record(net, nethook.inputs(torch.randn(2, 4)))
    assert id(net.a) in flow.called
    assert id(net.b) not in flow.called


def test_everything_is_left_as_it_was() -> None:
    x = torch.randn(5, 4)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state, given = torch.get_rng_state(), x.clone()
    record(model, nethook.inputs(x))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(x, given)
    assert model.training


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_a_model_without_shapes_is_refused() -> None:
    with pytest.raises(InitError, match="'weight' has no shape before the first forward"):
        record(nn.LazyLinear(3), nethook.inputs(torch.randn(2, 4)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_mean_square(dtype: torch.dtype) -> None:
    x = torch.randn(31, 7).to(dtype)
    assert mean_square(x) == pytest.approx(float(x.double().square().mean()), rel=1e-12)
    wide = torch.full((3, 1), 300.0).to(dtype).expand(3, 10**12)
    assert mean_square(wide) == 90_000.0  # overflows float16, and does not fit memory


@pytest.mark.parametrize(
    "x",
    [torch.ones(3, dtype=torch.int64), torch.zeros(0), torch.ones(2, device="meta"),
     torch.eye(3).to_sparse()],
    ids=["whole", "empty", "meta", "sparse"],
)  # fmt: skip
def test_what_has_no_mean_square(x: torch.Tensor) -> None:
    assert math.isnan(mean_square(x))
