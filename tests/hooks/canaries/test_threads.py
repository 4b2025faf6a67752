"""The canaries of what a thread is doing notice a wrong answer, and leave no mode or switch on."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from nethook import torch_private
from nethook.hooks.canaries import threads
from nethook.hooks.canaries.registry import CANARIES
from nethook.hooks.canaries.report import works
from nethook.hooks.canaries.threads import asked_in_vmap
from tests.hooks.canaries.lies import check_noticed

pytestmark = pytest.mark.short
OF_THREADS = [path for path, check in CANARIES.items() if check.__module__ == threads.__name__]


@pytest.mark.parametrize(
    ("attribute", "lie", "path"),
    [
        ("backward_id", lambda: -1, "torch._C._current_graph_task_id"),
        ("in_transform", lambda: False, "torch._C._are_functorch_transforms_active"),
        ("function_modes", lambda: 0, "torch._C._len_torch_function_stack"),
        ("function_mode_at", lambda _: None, "torch._C._get_function_stack_at"),
        ("dispatch_modes", lambda: 0, "torch._C._len_torch_dispatch_stack"),
        (
            "without_dispatch_modes",
            nullcontext,
            "torch.utils._python_dispatch._disable_current_modes",
        ),
        ("without_function_overrides", nullcontext, "torch._C.DisableTorchFunction"),
        ("set_grad", lambda _: None, "torch._C._set_grad_enabled"),
        ("is_autocast", lambda: False, "torch._C._is_any_autocast_enabled"),
        ("is_tracing", lambda: False, "torch._C._is_tracing"),
        ("dual_level", lambda: -1, "torch.autograd.forward_ad._current_level"),
        (
            "saved_tensors_hooks",
            lambda _: None,
            "torch._C._autograd._top_saved_tensors_default_hooks",
        ),
        ("queue_callback", lambda _: None, "torch.autograd.Variable._execution_engine"),
    ],
)
def test_a_wrong_answer_is_noticed(
    attribute: str, lie: object, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_noticed(monkeypatch, threads, path, attribute, lie)


def test_a_question_inside_a_transform_is_answered_there() -> None:
    values: list[torch.Tensor] = []
    assert asked_in_vmap(lambda x: values.append(x) or x.dim()) == 0  # one element of two
    assert len(values) == 1


@pytest.mark.parametrize("grad", [True, False])
def test_they_leave_the_thread_as_it_was(grad: bool) -> None:
    with torch.set_grad_enabled(grad):
        assert all(works(path) for path in OF_THREADS)
        assert torch.is_grad_enabled() is grad
    assert torch_private.function_modes() == torch_private.dispatch_modes() == 0
    assert not torch_private.is_autocast()
    assert torch_private.saved_tensors_hooks(False) is None
    assert torch_private.dual_level() == -1
