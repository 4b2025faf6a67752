"""How tensors are kept: lazy copies, references that notice a write, transforms, moves."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import nethook
from nethook.errors import OverwrittenError
from nethook.tracing.keep import Reference, held_tensors, keep_value, keeper, read_value


def keep_with(**options):
    defaults = {"copy": None, "detach": True, "device": None, "dtype": None, "transform": None}
    return keeper(**(defaults | options))


def shares_memory(kept, tensor):
    return torch._C._data_address(kept) == torch._C._data_address(tensor)


def test_a_lazy_copy_shares_its_memory_until_somebody_writes():
    tensor = torch.arange(4.0)
    kept = keep_with()(tensor)
    assert shares_memory(kept, tensor)
    tensor.mul_(10)
    assert not shares_memory(kept, tensor)
    assert torch.equal(kept, torch.arange(4.0))
    assert torch.equal(tensor, 10 * torch.arange(4.0))


def test_a_lazy_copy_of_a_tensor_in_a_graph_shares_its_memory_as_well():
    leaf = torch.arange(4.0, requires_grad=True)
    tensor = leaf * 1
    kept = keep_with()(tensor)
    assert shares_memory(kept, tensor)
    assert not kept.requires_grad
    tensor.mul_(10)
    assert torch.equal(kept, torch.arange(4.0))
    tensor.sum().backward()
    assert leaf.grad.tolist() == [10, 10, 10, 10]


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("layer", [nn.Linear(3, 3), nn.Softmax(-1), nn.Conv1d(2, 2, 1)])
def test_a_trace_copies_nothing_with_a_graph_or_without(layer, grad):
    x = torch.ones(2, 3, requires_grad=grad)
    with torch.set_grad_enabled(grad), nethook.trace(layer, "") as tape:
        output = layer(x * 1)
    assert output.requires_grad == grad
    assert shares_memory(tape[""].output, output)


def test_writing_to_what_was_captured_does_not_reach_the_network():
    tensor = torch.arange(4.0)
    keep_with()(tensor).zero_()
    assert torch.equal(tensor, torch.arange(4.0))


@pytest.mark.parametrize("write", [lambda t: t.add_(1), lambda t: t.data.add_(1)])
def test_views_of_the_original_stay_views(write):
    tensor = torch.zeros(4)
    view = tensor[:2]
    keep_with()(tensor)
    write(tensor)
    assert torch.equal(view, torch.ones(2))


def test_a_numpy_array_goes_on_sharing_the_memory_of_its_tensor():
    tensor = torch.zeros(3)
    array = tensor.numpy()
    kept = keep_with()(tensor)
    tensor.add_(1)
    assert np.array_equal(array, np.ones(3))  # a lazy copy would have parted them
    assert torch.equal(kept, torch.zeros(3))


def test_what_numpy_writes_to_its_own_memory_does_not_reach_what_was_captured():
    array = np.zeros(3, dtype="f4")
    kept = keep_with()(torch.from_numpy(array))
    array += 1
    assert torch.equal(kept, torch.zeros(3))


@pytest.mark.parametrize(
    "make",
    [lambda: torch.eye(2).to_sparse(), lambda: torch.zeros(3).share_memory_()],
    ids=["sparse", "shared"],
)
def test_where_no_lazy_copy_can_be_made_a_reference_notices_writes(make):
    tensor = make()
    kept = keep_with()(tensor)
    assert isinstance(kept, Reference)
    assert torch.equal(read_value(kept, "it").to_dense(), tensor.to_dense())
    tensor.mul_(2)
    with pytest.raises(OverwrittenError, match=r'it was captured by reference .* copy="now"'):
        read_value(kept, "it")


def test_an_inference_tensor_that_cannot_be_lazy_is_copied():
    with torch.inference_mode():
        tensor = torch.from_numpy(np.zeros(3, dtype="f4")) + 0
        array = tensor.numpy()  # fixes its memory
        kept = keep_with()(tensor)
        tensor.add_(1)
    assert array[0] == 1
    assert torch.equal(kept, torch.zeros(3))


def test_copy_true_copies_at_once_and_copy_false_never():
    tensor = torch.zeros(3)
    assert not shares_memory(keep_with(copy=True)(tensor), tensor)
    reference = keep_with(copy=False)(tensor)
    assert shares_memory(read_value(reference, "it"), tensor)
    tensor.add_(1)
    with pytest.raises(OverwrittenError):
        read_value(reference, "it")


def test_a_reference_to_an_inference_tensor_is_given_as_it_is():
    with torch.inference_mode():
        tensor = torch.zeros(3)
        reference = keep_with(copy=False)(tensor)
        tensor.add_(1)
        assert torch.equal(read_value(reference, "it"), torch.ones(3))


def test_kept_in_the_graph_it_is_the_very_tensor():
    tensor = torch.ones(3, requires_grad=True) * 2
    assert read_value(keep_with(detach=False)(tensor), "it") is tensor
    assert not read_value(keep_with()(tensor), "it").requires_grad


def test_a_copy_kept_in_the_graph_is_a_part_of_it():
    leaf = torch.ones(3, requires_grad=True)
    kept = keep_with(detach=False, copy=True)(leaf * 2)
    kept.sum().backward()
    assert torch.equal(leaf.grad, torch.full((3,), 2.0))


def test_dtype_changes_floating_point_and_nothing_else():
    keep = keep_with(dtype=torch.float64)
    assert keep(torch.ones(2)).dtype == torch.float64
    assert keep(torch.ones(2, dtype=torch.int32)).dtype == torch.int32
    assert keep(torch.ones(2, dtype=torch.complex64)).dtype == torch.complex64


def test_device_moves_what_is_kept():
    assert keep_with(device="meta")(torch.ones(2)).device.type == "meta"


def test_a_moved_copy_that_needed_no_move_is_still_safe_from_writes():
    tensor = torch.zeros(3)
    kept = keep_with(dtype=torch.float32, device="cpu")(tensor)
    tensor.add_(1)
    assert torch.equal(read_value(kept, "it"), torch.zeros(3))


def test_a_transform_may_return_anything():
    assert keep_with(transform=lambda t: t.sum().item())(torch.ones(3)) == 3.0
    assert keep_with(transform=lambda _: None)(torch.ones(3)) is None


def test_a_transform_that_writes_to_its_argument_changes_only_what_is_kept():
    tensor = torch.arange(3.0)
    kept = keep_with(transform=lambda t: t.mul_(0))(tensor)
    assert torch.equal(kept, torch.zeros(3))
    assert torch.equal(tensor, torch.arange(3.0))


def test_what_a_transform_returns_is_detached_cast_and_safe():
    weight = torch.ones(3, requires_grad=True)
    kept = keep_with(transform=lambda t: t[:2] * weight[:2], dtype=torch.float64)(torch.ones(3))
    assert (kept.dtype, kept.requires_grad) == (torch.float64, False)
    tensor = torch.zeros(4)
    kept = keep_with(transform=lambda t: t[:2])(tensor)
    tensor.add_(1)
    assert torch.equal(kept, torch.zeros(2))


class Marked(torch.Tensor):
    pass


def test_a_subclass_stays_itself():
    assert type(keep_with()(torch.ones(2).as_subclass(Marked))) is Marked


def test_a_parameter_becomes_a_plain_tensor():
    assert type(keep_with()(nn.Parameter(torch.ones(2)))) is torch.Tensor


def test_containers_are_kept_as_they_were_when_others_change_theirs():
    inner = [1]
    value = {"list": inner, "pair": (inner, torch.ones(1))}
    kept = keep_value(keep_with(), value)
    inner.append(2)
    value["more"] = 3
    assert kept["list"] == [1]
    assert kept["pair"][0] == [1]
    assert "more" not in kept


def test_nested_values_are_kept_and_read_as_they_were():
    value = {"a": (torch.ones(1), None), "b": [3, torch.zeros(2)]}
    kept = keep_value(keep_with(copy=False), value)
    assert len(held_tensors(kept)) == 2
    read = read_value(kept, "it")
    assert read["a"][1] is None
    assert read["b"][0] == 3
    value["b"][1].add_(1)
    with pytest.raises(OverwrittenError):
        read_value(kept, "it")


layouts = st.sampled_from(
    [
        lambda t: t,
        lambda t: t.transpose(0, -1),
        lambda t: t[..., ::2],
        lambda t: t.unsqueeze(0).expand(3, *t.shape),
        lambda t: t.to(torch.complex64).conj(),
        lambda t: t.to(torch.complex64).conj().imag,
        lambda t: t.to(torch.bfloat16),
        lambda t: t.to(torch.int16),
        lambda t: t > 0,
        lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8),
        lambda t: t[:0],
    ]
)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*[Qq]uant.*")  # torch announces that it will drop quantisation
@given(
    shape=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    layout=layouts,
    copy=st.sampled_from([None, True, False]),
)
def test_every_layout_is_kept_bit_for_bit_with_its_type(shape, layout, copy):
    tensor = layout(torch.randn(shape))
    kept = read_value(keep_with(copy=copy)(tensor), "it")
    assert (kept.shape, kept.dtype) == (tensor.shape, tensor.dtype)
    assert torch.equal(kept, tensor)


def test_a_user_who_counts_torch_calls_counts_none_of_ours():
    class Count(torch.overrides.TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            return func(*args, **(kwargs or {}))

    model, x = nn.Linear(2, 2), torch.randn(1, 2)
    with Count() as bare:
        model(x)
    with nethook.trace(model, inputs=True, grads=True, input_grads=True), Count() as traced:
        model(x)
    assert traced.calls == bare.calls


@pytest.mark.parametrize("copy", [None, True, False])
def test_a_transform_sees_the_value_before_it_is_cast(copy):
    seen = []
    keep = keep_with(copy=copy, dtype=torch.float64, transform=lambda t: seen.append(t.dtype) or t)
    assert keep(torch.ones(2)) is not None
    assert seen == [torch.float32]


class _Shows(nn.Module):
    """Returns far more elements than it stores."""

    def __init__(self, show):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.show = show

    def forward(self, x):
        return self.show(self.linear(x))


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("options", [{}, {"copy": True}, {"dtype": torch.float64}])
@pytest.mark.parametrize(
    "show",
    [
        lambda y: y[:1, :1].expand(2**30, 2**30),
        lambda y: y.flatten()[:1].expand(2**40),
        lambda y: y.repeat(2000, 1).flatten().unfold(0, 4000, 1)[None].expand(2**30, -1, -1),
    ],
)
def test_what_shows_its_memory_often_costs_its_memory(show, options, grad):
    model, x = nn.Sequential(_Shows(show)), torch.ones(4, 3)
    with torch.set_grad_enabled(grad), nethook.trace(model, "0", **options) as tape:
        output = model(x)
    kept = tape["0"].output
    assert kept.shape == output.shape
    assert kept.untyped_storage().nbytes() <= 2**20
    repr(tape)  # which does not read them all either
