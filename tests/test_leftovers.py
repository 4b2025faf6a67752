"""A test that leaves something switched on is found out, and the next one does not meet it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.modules import module as modules
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.flop_counter import FlopCounterMode

import nethook
from nethook.hooks.compile import graph
from nethook.hooks.compile.graph import Shown
from tests.leftovers import HOOKS, Before


def traced() -> object:
    model = nn.Linear(2, 2)
    scope = nethook.trace(model, "**/*")
    scope.__enter__()
    return scope


LEFT: dict[str, tuple[Callable[[], object], str]] = {
    "a hook on all modules": (
        lambda: modules.register_module_forward_hook(print),
        "a hook in torch.nn.modules.module._global_forward_hooks: <built-in function print>",
    ),
    "a hook on all optimizers": (
        lambda: register_optimizer_step_pre_hook(print),
        "_global_optimizer_pre_hooks",
    ),
    "a device for new tensors": (lambda: torch.device("meta").__enter__(), "a TorchFunctionMode"),
    "a dispatch mode": (lambda: FlopCounterMode(display=False).__enter__(), "a TorchDispatchMode"),
    "gradients": (lambda: torch.set_grad_enabled(False), "gradients: False (was True)"),
    "a default type": (lambda: torch.set_default_dtype(torch.float64), "default dtype: torch.f"),
    "anomaly detection": (lambda: torch.autograd.set_detect_anomaly(True), "anomaly detection"),
    "deterministic": (lambda: torch.use_deterministic_algorithms(True), "deterministic"),
    "autocast": (lambda: torch.set_autocast_enabled("cpu", True), "autocast on the CPU"),
    "kernels of NNPACK": (lambda: torch._C._set_nnpack_enabled(False), "NNPACK: False (was True)"),
    "kernels of oneDNN": (lambda: torch._C._set_mkldnn_enabled(False), "oneDNN: False (was True)"),
    "a stance": (lambda: torch.compiler.set_stance("force_eager"), "stance of torch.compile"),
    "a trace": (traced, "a wrapper around torch.utils.checkpoint"),
}


@pytest.mark.parametrize("name", LEFT)
def test_it_is_named_and_put_back(name: str) -> None:
    leave, expected = LEFT[name]
    import torch._dynamo

    before = Before()
    kept = leave()
    left = before.put_back()
    assert any(expected in line for line in left), left
    assert Before().put_back() == []
    assert torch.ones(2).requires_grad is False
    assert torch.ones(1).device.type == "cpu"
    del kept


def test_torch_compiles_again_after_a_mode_was_put_back() -> None:
    import torch._dynamo

    class Own(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    graphs: list[object] = []

    def backend(graph: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    before = Before()
    mode = FlopCounterMode(display=False).__enter__()
    before.put_back()
    torch.compile(Own(), backend=backend)(torch.ones(1))
    assert len(graphs) == 1
    del mode


def test_nothing_is_said_where_nothing_was_left() -> None:
    before = Before()
    with nethook.trace(nn.Linear(2, 2), "**/*"), torch.no_grad(), torch.device("meta"):
        pass
    assert before.put_back() == []


def test_every_table_of_hooks_is_known() -> None:
    for place, names in HOOKS.items():
        tables = {each for each in vars(sys.modules[place]) if each.startswith("_global_")}
        hooks = {
            each
            for each in tables
            if "hooks" in each and isinstance(vars(sys.modules[place])[each], dict)
        }
        assert hooks == set(names)


def test_who_asks_compiled_graphs_to_show_what_is_inside_no_longer_does() -> None:
    asked, who = Shown(), nn.Module()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(graph, "shown", asked)
        before = Before()
        asked.ask(who, True)
        asked.ask(who, False)
        assert not asked.on
        assert before.put_back() == []
        assert asked.on, "nobody asks any more, and then graphs show what is inside"
