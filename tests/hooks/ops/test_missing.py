"""Why an operation was not met: what its module had, and what has swallowed it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import nethook
from nethook.errors import NotRunError
from nethook.hooks.ops.names import op_name


class Program(nn.Module):
    """A module that runs a function."""

    def __init__(self, run: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x)


class Names(TorchFunctionMode):
    """The names of the operations that torch reports."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.found.append(op_name(func) or "")
        return func(*args, **(kwargs or {}))


def given() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(3, 4)


def weights(layer: nn.Module, gates: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Of each gate of a recurrent layer of four: the weight, and both biases."""
    parameters = [each.detach() for each in layer.parameters()]
    return [
        (parameters[0][s], parameters[2][s], parameters[3][s])
        for s in (slice(4 * k, 4 * k + 4) for k in range(gates))
    ]


def lstm_by_hand(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """One step from a state of zeros, so the gate that forgets has nothing to forget."""
    (wi, bi, hi), _, (wg, bg, hg), (wo, bo, ho) = weights(layer, 4)

    def run(x: Tensor) -> Tensor:
        i = torch.sigmoid(F.linear(x, wi, bi) + hi)
        g = torch.tanh(F.linear(x, wg, bg) + hg)
        o = torch.sigmoid(F.linear(x, wo, bo) + ho)
        return o * torch.tanh(i * g)

    return run


def gru_by_hand(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    (wr, br, hr), (wz, bz, hz), (wn, bn, hn) = weights(layer, 3)

    def run(x: Tensor) -> Tensor:
        r = torch.sigmoid(F.linear(x, wr, br) + hr)
        z = torch.sigmoid(F.linear(x, wz, bz) + hz)
        n = torch.tanh(F.linear(x, wn, bn) + r * hn)
        return n + -1 * z * n

    return run


def rnn_by_hand(layer: nn.Module, act: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    [(w, b, h)] = weights(layer, 1)
    return lambda x: act(F.linear(x, w, b) + h)


def normed(x: Tensor, dim: int) -> Tensor:
    return (x - x.mean(dim, keepdim=True)) * (x.var(dim, correction=0, keepdim=True) + 1e-5).rsqrt()


torch.manual_seed(0)
W = torch.randn(4, 4)
TARGET = torch.tensor([0, 3, 1])
LSTM, GRU, LSTM_CELL, GRU_CELL = nn.LSTM(4, 4), nn.GRU(4, 4), nn.LSTMCell(4, 4), nn.GRUCell(4, 4)
TANH, RELU = nn.RNN(4, 4), nn.RNN(4, 4, nonlinearity="relu")

# What torch computes at once, and the same by hand: what is met by hand is inside.
SAME: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "scaled_dot_product_attention": (
        lambda x: F.scaled_dot_product_attention(x, x, x),
        lambda x: torch.softmax(x @ x.mT / 2, -1) @ x,
    ),
    "cross_entropy": (
        lambda x: F.cross_entropy(x, TARGET),
        lambda x: F.nll_loss(F.log_softmax(x, -1), TARGET),
    ),
    "lstm": (lambda x: LSTM(x[None])[0], lstm_by_hand(LSTM)),
    "gru": (lambda x: GRU(x[None])[0], gru_by_hand(GRU)),
    "rnn_tanh": (lambda x: TANH(x[None])[0], rnn_by_hand(TANH, torch.tanh)),
    "rnn_relu": (lambda x: RELU(x[None])[0], rnn_by_hand(RELU, torch.relu)),
    "lstm_cell": (lambda x: LSTM_CELL(x)[0], lstm_by_hand(LSTM_CELL)),
    "gru_cell": (lambda x: GRU_CELL(x), gru_by_hand(GRU_CELL)),
    "layer_norm": (lambda x: F.layer_norm(x, (4,)), lambda x: normed(x, -1)),
    "rms_norm": (
        lambda x: F.rms_norm(x, (4,), eps=0.0),
        lambda x: x * x.pow(2).mean(-1, keepdim=True).rsqrt(),
    ),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), lambda x: normed(x, 0)),
    "group_norm": (lambda x: F.group_norm(x, 1), lambda x: normed(x, 1)),
    "linear": (lambda x: F.linear(x, W, W[0]), lambda x: x @ W.mT + W[0]),
    "addmm": (lambda x: torch.addmm(W[0], x, W), lambda x: x @ W + W[0]),
    "baddbmm": (
        lambda x: torch.baddbmm(W[0], x.expand(1, 3, 4), W.expand(1, 4, 4))[0],
        lambda x: x @ W + W[0],
    ),
    "einsum": (lambda x: torch.einsum("ij,jk->ik", x, W), lambda x: x @ W),
    "gelu": (lambda x: F.gelu(x), lambda x: (x * 0.5) * (torch.erf(x * 0.5**0.5) + 1)),
    "silu": (lambda x: F.silu(x), lambda x: x * torch.sigmoid(x)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), lambda x: torch.log(torch.softmax(x, -1))),
    "softmax": (
        lambda x: torch.softmax(x, -1),
        lambda x: torch.exp(x) / torch.exp(x).sum(-1, keepdim=True),
    ),
    "norm": (lambda x: x.norm(), lambda x: x.pow(2).sum().sqrt()),
}
AROUND = {"getitem", "expand"}  # what the programs above need beside


@pytest.mark.parametrize("name", SAME)
def test_what_a_kernel_has_swallowed_is_said(name: str) -> None:
    at_once, by_hand = SAME[name]
    x = given()
    with Names() as mode:
        expected = by_hand(x)
    inside = [f"/{each}#0" for each in sorted({*mode.found} - AROUND - {""})]
    model = Program(at_once)
    with nethook.trace(model, *inside) as tape:
        found = model(x)
    torch.testing.assert_close(found.view(-1), expected.reshape(-1))
    assert inside
    for asked in inside:
        with pytest.raises(NotRunError, match=f"nearest to it is '[^']*{name}#0'"):
            tape[asked].output


def why(run: Callable[[Tensor], Tensor], asked: str) -> str:
    model = Program(run)
    with nethook.trace(model, asked) as tape:
        model(given())
    with pytest.raises(NotRunError) as error:
        tape[asked].output
    return str(error.value)


@pytest.mark.parametrize(
    ("times", "more"), [(1, ""), (12, ""), (13, " and 1 more"), (15, " and 3 more")]
)
def test_a_module_with_many_operations_names_twelve(times: int, more: str) -> None:
    def run(x: Tensor) -> Tensor:
        for _ in range(times):
            x = torch.relu(x)
        return x

    named = ", ".join(f"'/relu#{k}'" for k in range(min(times, 12)))
    assert why(run, "/tanh#0").endswith(f": '' has had {named}{more}.")


def test_an_operation_of_its_own_is_not_looked_for_inside_another() -> None:
    text = why(lambda x: torch.softmax(F.log_softmax(x, -1), -1), "/softmax#1")
    assert text.endswith(": '' has had '/log_softmax#0', '/softmax#0'.")


def test_what_is_inside_is_told_with_all_that_there_was() -> None:
    text = why(lambda x: torch.relu(F.silu(x)), "/sigmoid#0")
    assert text.endswith(
        ": what happens inside silu has no address, and nearest to it is '/silu#0'. "
        "'' has had '/silu#0', '/relu#0'."
    )


def test_a_function_in_python_is_read_and_those_that_it_calls() -> None:
    # F.hardtanh calls torch._C._nn.hardtanh_; F.multi_head_attention_forward calls linear.
    attention = nn.MultiheadAttention(4, 2)
    with nethook.trace(attention, "/addmm#0", "/dropout#0") as tape:
        attention(given(), given(), given())
    for asked in ("/addmm#0", "/dropout#0"):
        with pytest.raises(NotRunError, match="inside multi_head_attention_forward has no"):
            tape[asked].output


def test_a_layer_that_was_fused_once_tells_what_it_had_the_other_time() -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 3, 8)
    with nethook.trace(model, "/tanh#0") as tape:
        model(x)
        with torch.no_grad():
            model(x)
    with pytest.raises(NotRunError, match="'' has had '/"):
        tape["/tanh#0"].output
