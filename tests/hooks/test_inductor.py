"""Inductor calls our operations as functions: no dispatch on the way, and nothing is copied."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch import Tensor, nn
from torch._inductor.utils import run_fw_bw_and_get_code

from nethook.hooks import inductor
from tests.hooks.test_in_graph import Module, Told
from tests.modes.compiling import fresh

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Dynamo and Inductor have many
    pytest.mark.skipif(
        torch.__version__ < (2, 11), reason="Inductor has no table of lines for operations"
    ),
]


def code_of(model: nn.Module, given: Tensor) -> tuple[list[str], Tensor]:
    """What Inductor writes for a model, forward and backward; and the gradient of the input."""
    compiled = torch.compile(model, fullgraph=True)
    _, codes = run_fw_bw_and_get_code(lambda: compiled(given))
    assert given.grad is not None
    return codes, given.grad


@pytest.fixture
def told() -> Told:
    return Told()


def test_the_code_has_calls_of_our_functions_alone(told: Told) -> None:
    given = torch.randn(8, 4, requires_grad=True)
    weight = torch.randn(4, 4)
    with fresh(), torch._inductor.config.patch(fx_graph_cache=False):
        codes, grad = code_of(Module(lambda x: (x @ weight).relu(), told), given)
    code = "\n".join(codes)
    assert code.count("torch.ops.nethook.value_in_inductor(") == 1
    assert code.count("torch.ops.nethook.grad_in_inductor(") == 1
    assert "torch.ops.nethook.value.default(" not in code
    assert "torch.ops.nethook.grad.default(" not in code
    # The numbers are inputs of the graphs, and go on as they are.
    for line in code.splitlines():
        if "_in_inductor(" in line:
            assert "reinterpret_tensor" not in line.split(",", 1)[1], line
    out = (given @ weight).relu()
    assert torch.equal(told.values[0].value, out)
    assert torch.equal(told.grads[0], torch.ones_like(out))
    (expected,) = torch.autograd.grad(out.sum(), given)
    torch.testing.assert_close(grad, expected)


@pytest.mark.parametrize("missing", ["table", "entry", "module"])
def test_without_that_table_all_stays_as_it_was(
    told: Told, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    table = importlib.import_module(inductor._TABLE)
    known = dict(table.CUSTOM_EXTERN_KERNEL_CODEGEN)
    for name in list(known):
        if ".nethook." in name:
            monkeypatch.delitem(table.CUSTOM_EXTERN_KERNEL_CODEGEN, name)
    if missing == "table":
        monkeypatch.setattr(inductor, "_TABLE", "nethook.no.such.module")
    elif missing == "entry":
        monkeypatch.delattr(table, "CustomCodegen")
    else:
        monkeypatch.setattr(inductor, "_TABLE", "math")
    given = torch.randn(8, 4, requires_grad=True)
    with fresh(), torch._inductor.config.patch(fx_graph_cache=False):
        codes, _ = code_of(Module(lambda x: x * 3, told), given)
    assert "torch.ops.nethook.value.default(" in "\n".join(codes)
    assert torch.equal(told.values[0].value, given * 3)
    assert torch.equal(told.grads[0], torch.ones_like(given))
