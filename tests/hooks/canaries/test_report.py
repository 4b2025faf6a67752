"""Every private name of torch has a canary, which works on this torch and can fail."""

from __future__ import annotations

import pytest
import torch

from nethook import torch_private
from nethook.hooks.canaries.registry import CANARIES
from nethook.hooks.canaries.report import failing, works
from nethook.private_names import NAMES

pytestmark = pytest.mark.short

EXPECTED = [path for path, each in NAMES.items() if each.is_expected]


@pytest.mark.parametrize("path", EXPECTED)
def test_the_canary_of(path: str) -> None:
    assert works(path), f"torch {torch.__version__} answers otherwise: {NAMES[path].lost}"


def test_every_name_has_one() -> None:
    assert CANARIES.keys() == NAMES.keys()


def test_none_fails_on_a_torch_that_was_tested() -> None:
    assert failing() == []
    assert failing(quick=True) == []


@pytest.mark.parametrize(
    ("attribute", "lie", "path"),
    [
        ("backward_id", lambda: 0, "torch._C._current_graph_task_id"),
        ("version_of", lambda _: 0, "torch.Tensor._version"),
        ("is_view", lambda _: False, "torch.Tensor._is_view"),
        ("lazy_clone", torch.clone, "torch._lazy_clone"),
        ("norms", lambda *_, **__: [], "torch._foreach_norm"),
        ("children_of", lambda module: dict(module.named_children()), "torch.nn.Module._modules"),
        ("saves_its_result", lambda _: True, "torch.autograd.graph.Node._saved_self"),
        ("CALL", None, "torch.nn.Module._call_impl"),
    ],
)
def test_a_canary_can_fail(
    attribute: str, lie: object, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_private, attribute, lie)
    assert not works(path)
    assert [each.path for each in failing(quick=True) if each.path == path] == [path]


def test_a_name_outside_its_window_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "torch._lazy_clone"
    monkeypatch.setitem(CANARIES, path, lambda: False)
    monkeypatch.setitem(NAMES, path, NAMES[path]._replace(until="2.7"))
    assert failing(quick=True) == []
    monkeypatch.setitem(NAMES, path, NAMES[path]._replace(until="", since="9.0"))
    assert failing(quick=True) == []
