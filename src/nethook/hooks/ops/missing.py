"""Why an operation was not met: what its module had instead, and what may have swallowed it."""

from __future__ import annotations

from types import FunctionType

from nethook.addresses.op_addresses import op_address
from nethook.hooks.ops.consumer import Met
from nethook.hooks.ops.names import known_names

# What happens inside functions of torch that are one kernel, or hand over to one.
_INSIDE = {
    "scaled_dot_product_attention": "softmax matmul bmm baddbmm dropout mul div",
    "cross_entropy": "log_softmax softmax nll_loss",
    "lstm": "linear sigmoid tanh mul add dropout",
    "gru": "linear sigmoid tanh mul add dropout",
    "rnn_tanh": "linear tanh add dropout",
    "rnn_relu": "linear relu add dropout",
    "lstm_cell": "linear sigmoid tanh mul add",
    "gru_cell": "linear sigmoid tanh mul add",
    "layer_norm": "mean var sub div mul add rsqrt",
    "rms_norm": "mean pow mul rsqrt",
    "batch_norm": "mean var sub div mul add rsqrt",
    "group_norm": "mean var sub div mul add rsqrt",
    "linear": "matmul mm addmm add t",
    "addmm": "matmul mm add",
    "baddbmm": "matmul bmm add",
    "einsum": "matmul bmm mul sum permute",
    "gelu": "erf tanh mul add",
    "silu": "sigmoid mul",
    "log_softmax": "softmax log exp",
    "softmax": "exp sum div",
    "norm": "pow sum sqrt",
}


def why_no_op(met: Met | None, module: str, name: str) -> str:
    """Why a module has no operation of some name and number, and what it has."""
    counts = None if met is None else met.counts(module)
    if met is None or counts is None:
        return f"the module {module!r} has not been called in it."
    if not counts and met.was_fused(module):
        return (
            f"the module {module!r} runs as one fused kernel in evaluation without gradient. To "
            "see inside, call torch.backends.mha.set_fastpath_enabled(False) before the forward."
        )
    inside = next((outer for outer in counts if name in _names_inside(outer)), None)
    if name not in counts and inside is not None:
        return (
            f"what happens inside {inside} has no address, and nearest to it is "
            f"{op_address(module, inside, 0)!r}. {_had(module, counts)}"
        )
    return _had(module, counts)


def _had(module: str, counts: dict[str, int]) -> str:
    if not counts:
        return f"the module {module!r} was called, and has no operation of its own."
    had = [op_address(module, name, k) for name, count in counts.items() for k in range(count)]
    more = len(had) - 12
    shown = ", ".join(repr(address) for address in had[:12])
    return f"{module!r} has had {shown}{f' and {more} more' if more > 0 else ''}."


def _names_inside(name: str) -> set[str]:
    """The names of operations that happen inside an operation."""
    inside = set(_INSIDE.get(name, "").split())
    for function, op in known_names.items():
        if op == name and isinstance(function, FunctionType):
            called = {word.strip("_") for word in function.__code__.co_names}
            deeper = [_INSIDE[word].split() for word in called if word in _INSIDE]
            inside |= called.union(*deeper)
    return inside
