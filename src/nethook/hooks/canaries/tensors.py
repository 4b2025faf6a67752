"""Canaries of tensors and of the nodes that made them."""

from __future__ import annotations

import torch
from torch import Tensor

from nethook import torch_private as private
from nethook.hooks.canaries.registry import canary
from nethook.hooks.canaries.threads import asked_in_vmap


@canary("torch.Tensor._version")
def _version() -> bool:
    x = torch.ones(2)
    before = private.version_of(x)
    x[:1].add_(1)
    return private.version_of(x) == before + 1


@canary("torch.Tensor._base", "torch.Tensor._is_view")
def _base() -> bool:
    x = torch.ones(2)
    view = x[:1]
    return (
        private.base_of(view) is x
        and private.base_of(x) is None
        and private.is_view(view)
        and not private.is_view(x)
    )


@canary("torch.Tensor._backward_hooks", "torch.autograd.graph.Node._register_hook_dict")
def _hooks_of_tensor() -> bool:
    with torch.enable_grad():
        y = torch.ones(2, requires_grad=True) * 2
        empty = private.hooks_of_tensor(y)
        seen: list[Tensor] = []
        private.new_table_of(y, y.grad_fn)[10**9] = seen.append
        y.sum().backward()
    return empty is None and len(seen) == 1 and 10**9 in (private.hooks_of_tensor(y) or ())


@canary("torch.Tensor._post_accumulate_grad_hooks")
def _accumulate_hooks() -> bool:
    return private.accumulate_hooks_of(torch.ones(2, requires_grad=True)) is None


@canary("torch.UntypedStorage._cdata")
def _storage_id() -> bool:
    x, other = torch.ones(4), torch.empty(0)

    def of(tensor: Tensor) -> int:
        return private.storage_id(tensor.untyped_storage())

    return of(x) == of(x[2:]) and len({of(x), of(other), of(torch.empty(0))}) == 3


@canary("torch.Tensor._is_zerotensor")
def _zero_tensor() -> bool:
    return private.is_zero_tensor(torch.ones(2)) is False


@canary("torch.Tensor._indices", "torch.Tensor._values")
def _sparse() -> bool:
    twice = torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.tensor([2.0, 3.0]), (3,))
    places, values = private.sparse_indices(twice), private.sparse_values(twice)
    return places.tolist() == [[1, 1]] and values.tolist() == [2.0, 3.0]


@canary("torch.distributed.tensor.DTensor._local_tensor")
def _local_of() -> bool:
    if not torch.distributed.is_available():
        return True
    from torch.distributed.tensor import DTensor

    # A tensor over ranks needs a process group; its class declares the attribute all the same.
    attribute = "torch.distributed.tensor.DTensor._local_tensor".rpartition(".")[2]
    return attribute in getattr(DTensor, "__annotations__", {}) or hasattr(DTensor, attribute)


@canary("torch._debug_has_internal_overlap")
def _overlaps() -> bool:
    one = torch.ones(1)
    return private.overlaps(one.expand(3)) == 1 and private.overlaps(torch.ones(2, 3).t()) == 0


@canary("torch._foreach_norm")
def _norms() -> bool:
    norms = private.norms([torch.tensor([3.0, 4.0]), torch.ones(1)], 2, dtype=torch.float64)
    return [(norm.item(), norm.dtype) for norm in norms] == [
        (5.0, torch.float64),
        (1.0, torch.float64),
    ]


@canary("torch._lazy_clone", "torch._C._data_address")
def _lazy_clone() -> bool:
    x = torch.ones(4)
    twin = private.lazy_clone(x)
    shared = private.data_address(x) == private.data_address(twin)
    still = private.data_address(x) == private.data_address(twin)  # asking does not part them
    x.add_(1)
    return shared and still and twin.tolist() == [1.0] * 4 and x.tolist() == [2.0] * 4


@canary("torch.Tensor._use_count", "torch._C._storage_Use_Count")
def _owners() -> bool:
    x = torch.ones(4)
    storage = x.untyped_storage()
    alone = private.owners_of(private.storage_id(storage))
    view = x[1:]
    return (
        alone == 2
        and private.owners_of(private.storage_id(storage)) == 3
        and private.uses_of(view) == 1
        and private.uses_of(x) == 2  # the part holds its base
    )


@canary("torch._C._autograd._unsafe_set_version_counter")
def _set_versions() -> bool:
    x = torch.ones(2)
    before = private.version_of(x)
    x.add_(1)
    private.set_versions((x,), (before,))
    return private.version_of(x) == before


@canary("torch._C._functorch.is_functorch_wrapped_tensor")
def _of_a_transform() -> bool:
    inside = asked_in_vmap(private.is_of_a_transform)
    return inside and not private.is_of_a_transform(torch.ones(2))


@canary("torch._C._dispatch_keys", "torch._C.DispatchKey")
def _dispatch_keys() -> bool:
    def number(tensor: Tensor) -> int:
        return int(private.dispatch_keys(tensor).raw_repr())

    usual = number(torch.ones(2))
    others = [torch.ones(2, device="meta"), torch.ones(2).to_sparse(), torch.ones(2) * 1j]
    others[-1] = others[-1].conj()
    meta = private.dispatch_keys(others[0]).has(private.DispatchKey.Meta)
    return (
        usual == number(torch.zeros(3, 4))
        and len({usual, *map(number, others)}) == 4
        and meta
        and not private.dispatch_keys(torch.ones(2)).has(private.DispatchKey.Python)
    )


@canary("torch._C._autograd._get_sequence_nr", "torch.autograd.graph.Node._sequence_nr")
def _node_numbers() -> bool:
    with torch.enable_grad():
        x = torch.ones(2, requires_grad=True)
        begin = private.next_node_number()
        y, z = x * 2, x * 3
        end = private.next_node_number()
    return [private.node_number(tensor.grad_fn) for tensor in (y, z)] == [begin, begin + 1] and (
        end == begin + 2
    )


def _product() -> Tensor:
    with torch.enable_grad():
        return torch.full((2, 3), 2.0, requires_grad=True) * torch.full((3,), 5.0)


@canary("torch.autograd.graph.Node._input_metadata")
def _shapes_of_node() -> bool:
    metadata = private.shapes_of_node(_product().grad_fn)
    return [(tuple(entry.shape), entry.dtype) for entry in metadata] == [((2, 3), torch.float32)]


@canary(
    "torch.autograd.graph.Node._saved_self",
    "torch.autograd.graph.Node._raw_saved_self",
    "torch._C._autograd.SavedTensor.unpack_hook",
)
def _saved_by() -> bool:
    node = _product().grad_fn
    saved, raw = private.saved_by(node, "other"), private.raw_saved_by(node, "other")
    unpacked: list[Tensor] = []

    def unpack(tensor: Tensor) -> Tensor:
        unpacked.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        hooked = _product().grad_fn
    with torch.enable_grad():
        keeps = torch.ones(2, requires_grad=True).relu().grad_fn
    return (
        saved.tolist() == [5.0] * 3
        and raw is not None
        and private.saved_without_hooks(node, "other").tolist() == [5.0] * 3
        and private.saved_without_hooks(hooked, "other") is None
        and not unpacked
        and private.saved_by(node, "nothing") is None
        and len(private.everything_saved_by(node)) >= 1
        and private.saves_its_result(keeps)
        and not private.saves_its_result(node)
    )
