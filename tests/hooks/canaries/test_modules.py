"""The canaries of modules notice a wrong answer, and leave no hook on all modules."""

from __future__ import annotations

import pytest
from torch import nn

from nethook import torch_private
from nethook.hooks.canaries import modules
from nethook.hooks.canaries.registry import CANARIES
from nethook.hooks.canaries.report import works
from tests.hooks.canaries.lies import check_noticed

pytestmark = pytest.mark.short
MODULE = "torch.nn.Module"
GLOBAL = "torch.nn.modules.module"
OF_MODULES = [path for path, check in CANARIES.items() if check.__module__ == modules.__name__]


@pytest.mark.parametrize(
    ("attribute", "lie", "path"),
    [
        ("parameters_of", lambda m: dict(m.named_parameters()), f"{MODULE}._parameters"),
        ("buffers_of", lambda m: {}, f"{MODULE}._buffers"),
        ("NOT_SAVED", "training", f"{MODULE}._non_persistent_buffers_set"),
        ("compiled_call_of", lambda m: m, f"{MODULE}._compiled_call_impl"),
        ("FULL_BACKWARD", "_no_such_flag", f"{MODULE}._is_full_backward_hook"),
        ("REPLICA", "_no_such_mark", f"{MODULE}._replicate_for_data_parallel"),
        ("BatchNorms", nn.LayerNorm, "torch.nn.modules.batchnorm._BatchNorm"),
        ("Dropouts", nn.Identity, "torch.nn.modules.dropout._DropoutNd"),
        ("pre_hooks_with_kwargs_of", lambda m: {}, f"{MODULE}._forward_pre_hooks_with_kwargs"),
        ("hooks_always_called_of", lambda m: {}, f"{MODULE}._forward_hooks_always_called"),
        ("global_with_kwargs", {}, f"{GLOBAL}._global_forward_hooks_with_kwargs"),
        ("any_global_hook", lambda: False, f"{GLOBAL}._has_any_global_hook"),
    ],
)
def test_a_wrong_answer_is_noticed(
    attribute: str, lie: object, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_noticed(monkeypatch, modules, path, attribute, lie)


@pytest.mark.parametrize("kind", ["global_forward_pre", "global_forward"])
def test_a_table_that_torch_does_not_read_is_noticed(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{GLOBAL}.{torch_private.HOOKS_ON_ALL_MODULES[kind]}"
    assert works(path)
    monkeypatch.setitem(torch_private.GLOBAL_HOOKS, kind, {})
    assert not works(path)


def test_every_kind_of_hook_has_a_canary() -> None:
    tables = {f"{MODULE}.{attribute}" for attribute in torch_private.HOOKS_OF_MODULES.values()}
    assert tables <= set(OF_MODULES)


def test_they_leave_no_hook_on_all_modules() -> None:
    before = {kind: dict(table) for kind, table in torch_private.GLOBAL_HOOKS.items()}
    assert all(works(path) for path in OF_MODULES)
    assert {kind: dict(table) for kind, table in torch_private.GLOBAL_HOOKS.items()} == before
    assert not torch_private.global_with_kwargs
    assert not torch_private.global_always_called
