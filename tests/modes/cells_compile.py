"""torch.compile."""

from __future__ import annotations

import torch

import nethook
from tests.modes.matrix import cell, mode
from tests.modes.steps import batches, equal, network, patched

FULLGRAPH = mode(
    "torch.compile", "`fullgraph=True`", "the whole model is one graph",
    edit="t.b.d.", features="t.b.d.", watch="t.b.d.",
)  # fmt: skip


def _compiled_code_runs():
    return patched("nethook.tracing.scope.run_eagerly_where_compiled", lambda *_: None)


@cell("trace", FULLGRAPH, "mlp", guard=_compiled_code_runs, without="hooks are passed by")
def trace_of_a_compiled_model(name: str) -> None:
    torch._dynamo.reset()
    model = network(name)
    compiled = torch.compile(network(name), backend="eager", fullgraph=True)
    for x, _ in batches(name):
        compiled(x)
        with nethook.trace(model) as expected:
            model(x)
        with nethook.trace(compiled) as tape:
            compiled(x)
        assert list(tape) == list(expected)
        equal([tape[site].output for site in tape], [expected[site].output for site in expected])
