"""The canaries of tensors and nodes notice an answer that is no longer right."""

from __future__ import annotations

import pytest
import torch

from nethook import torch_private
from nethook.hooks.canaries import tensors
from nethook.hooks.canaries.report import works
from tests.hooks.canaries.lies import check_noticed

pytestmark = pytest.mark.short
NODE = "torch.autograd.graph.Node"


@pytest.mark.parametrize(
    ("attribute", "lie", "path"),
    [
        ("base_of", lambda _: None, "torch.Tensor._base"),
        ("hooks_of_tensor", lambda _: None, "torch.Tensor._backward_hooks"),
        ("accumulate_hooks_of", lambda _: {}, "torch.Tensor._post_accumulate_grad_hooks"),
        ("storage_id", lambda _: 0, "torch.UntypedStorage._cdata"),
        ("is_zero_tensor", lambda _: True, "torch.Tensor._is_zerotensor"),
        ("sparse_values", lambda x: x.coalesce().values(), "torch.Tensor._values"),
        ("overlaps", lambda _: 0, "torch._debug_has_internal_overlap"),
        ("data_address", id, "torch._C._data_address"),
        ("owners_of", lambda _: 1, "torch._C._storage_Use_Count"),
        ("uses_of", lambda _: 1, "torch.Tensor._use_count"),
        ("set_versions", lambda *_: None, "torch._C._autograd._unsafe_set_version_counter"),
        ("node_number", lambda _: 0, f"{NODE}._sequence_nr"),
        ("shapes_of_node", lambda _: [], f"{NODE}._input_metadata"),
        ("raw_saved_by", lambda *_: None, f"{NODE}._raw_saved_self"),
    ],
)
def test_a_wrong_answer_is_noticed(
    attribute: str, lie: object, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_noticed(monkeypatch, tensors, path, attribute, lie)


def test_a_hook_that_is_run_when_a_saved_tensor_is_read_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading what a node saved must not call the user's own hooks on saved tensors."""
    monkeypatch.setattr(torch_private, "saved_without_hooks", torch_private.saved_by)
    assert not works("torch._C._autograd.SavedTensor.unpack_hook")


def test_gradients_may_be_off_when_they_run() -> None:
    with torch.no_grad():
        assert works("torch.Tensor._backward_hooks")
        assert works(f"{NODE}._sequence_nr")
    assert torch.is_grad_enabled()
