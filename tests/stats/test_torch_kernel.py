"""The torch kernel: nothing waits for the device, and a compiled graph holds it whole."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nethook.stats import rows as rows_file
from nethook.stats import torch_kernel
from nethook.stats.fields import INDEX
from nethook.stats.native import binding
from nethook.stats.rows import Rows

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit")  # torch scripts formulas

# Operations whose result, or whose shape, the host must know before it goes on.
WAITING = {
    "_local_scalar_dense",
    "item",
    "is_nonzero",
    "equal",
    "nonzero",
    "masked_select",
    "bincount",
    "histc",
    "unique_dim",
    "_unique2",
    "unique_consecutive",
    "repeat_interleave",
    "_to_copy",  # to another device; looked at more closely below
    "copy_",
}


class Device(torch.Tensor):
    """A stand-in for a tensor on a device: it counts what would wait for it."""

    waited: list[str]

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        flat = torch.utils._pytree.tree_leaves((args, kwargs))
        if name in WAITING and any(isinstance(each, Device) for each in flat):
            stays = name == "_to_copy" and kwargs.get("device") is None
            stays |= name == "copy_" and isinstance(args[0], Device)
            if not stays:
                Device.waited.append(name)
        # A mask as an index has a shape that depends on its values.
        if name in ("index", "index_put", "index_put_") and any(
            each is not None and each.dtype == torch.bool for each in args[1]
        ):
            Device.waited.append("index by a mask")

        def strip(each):
            return each.inner if isinstance(each, Device) else each

        tree_map = torch.utils._pytree.tree_map
        out = func(*tree_map(strip, args), **tree_map(strip, kwargs))
        first = args[0] if args else None
        if isinstance(first, Device) and out is first.inner:
            return first
        return tree_map(lambda each: Device(each) if type(each) is torch.Tensor else each, out)


@pytest.fixture(autouse=True)
def nothing_waited():
    Device.waited = []


def tensors():
    x = torch.randn(3, 40, 7)
    x[0, 0, 0] = torch.nan
    yield from (x, x.half(), x.bfloat16(), x.double(), x.transpose(0, 2), x.long(), x > 0)
    yield torch.complex(x, x)
    yield torch.complex(x.double(), x.double()).transpose(0, 1)
    yield torch.empty(0, 3)
    yield torch.tensor(1.0)


@pytest.mark.filterwarnings("ignore:.*mutable_data_ptr.*")
def test_nothing_waits_for_the_device():
    for x in tensors():
        row, histogram, turn = torch_kernel.slots(torch.device("cpu"))
        plain = [each.clone() for each in (row, histogram, turn)]
        bits = torch.zeros(x.shape[-1] if x.dim() else 0, dtype=torch.uint8)
        plain_bits = bits.clone()
        unit = max(x.dim() - 1, 0)
        for slots, each, units in (
            ((row, histogram, turn), Device(x), Device(bits)),
            (plain, x, plain_bits),
        ):
            wrapped = [Device(s) for s in slots] if isinstance(each, Device) else slots
            torch_kernel.fold_(
                wrapped[0],
                each,
                histogram=wrapped[1],
                turn=wrapped[2],
                limit=100,
                bits=units if x.dim() else None,
                unit=unit,
                near=(0.1, 0.9),
            )
        assert Device.waited == []
        assert torch.equal(row, plain[0])
        assert torch.equal(histogram, plain[1])
        assert torch.equal(bits, plain_bits)


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: x.sum().item(),
        lambda x: bool(x.sum() > 0),
        lambda x: x[x > 0],
        lambda x: torch.nonzero(x),
        lambda x: x.to("meta"),
        lambda x: torch.empty(3).copy_(x),
    ],
)
def test_the_stand_in_notices_what_waits(wait):
    wait(Device(torch.randn(3)))
    assert Device.waited


def test_the_source_names_nothing_that_waits():
    source = Path(torch_kernel.__file__).read_text(encoding="utf-8")
    code = re.sub(r'"""(.|\n)*?"""|#.*', "", source)
    assert not re.search(r"\.item\(|\.cpu\(|\.tolist\(|\.numpy\(|var_mean|bincount|nonzero", code)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.complex64])
def test_a_compiled_graph_holds_it_whole(dtype):
    def step(x, row, histogram, turn, bits):
        y = torch.relu(x.real if x.is_complex() else x) if not x.is_complex() else x * 2
        torch_kernel.fold_(row, y, histogram=histogram, turn=turn, limit=50, bits=bits, unit=1)
        return y

    torch._dynamo.reset()
    graphs = []

    def backend(graph, example):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(step, fullgraph=True, backend=backend)
    x = torch.randn(5, 30, dtype=dtype)
    slots = [each.clone() for each in torch_kernel.slots(torch.device("cpu"))]
    bits = torch.zeros(30, dtype=torch.uint8)
    eager = [each.clone() for each in (*slots, bits)]
    for _ in range(4):
        compiled(x, *slots, bits)
        step(x, *eager)
    assert len(graphs) == 1  # no break, and no second graph as the phase rotates
    for ours, theirs in zip((*slots, bits), eager, strict=True):
        assert torch.equal(ours, theirs)


def test_inductor_counts_the_same():
    def step(x, row, histogram, turn):
        y = torch.relu(x)
        torch_kernel.fold_(row, y, histogram=histogram, turn=turn, limit=100)
        return y

    torch._dynamo.reset()
    x = torch.randn(9, 50)
    slots = torch_kernel.slots(torch.device("cpu"))
    eager = torch_kernel.slots(torch.device("cpu"))
    compiled = torch.compile(step, fullgraph=True)
    for _ in range(3):
        compiled(x, *slots)
        step(x, *eager)
    assert torch.equal(slots[1], eager[1])
    assert torch.equal(slots[2], eager[2])
    for name in INDEX:
        if name not in ("mean", "mean_low", "m2"):
            assert slots[0][INDEX[name]] == eager[0][INDEX[name]], name
    assert slots[0][INDEX["mean"]] == pytest.approx(float(eager[0][INDEX["mean"]]), rel=1e-12)
    assert slots[0][INDEX["m2"]] == pytest.approx(float(eager[0][INDEX["m2"]]), rel=1e-12)


class _Copies(TorchDispatchMode):
    """Counts the copies that `collect` makes."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_what_is_folded_elsewhere_is_fetched_in_one_packed_copy(monkeypatch):
    monkeypatch.setattr(binding, "fold", None)
    monkeypatch.setattr(binding, "has_warned", True)
    rows = Rows(3, limit=20)
    slots = [rows.slot(place, unit_dim=-1) for place in range(3)]
    for _ in range(2):
        for place, slot in enumerate(slots):
            slot.fold(torch.randn(4, 5 + place).relu())
    with _Copies() as copies:
        rows.collect()
    assert copies.seen.count("cat") == 1
    first = rows.matrix.copy()
    assert first[:, INDEX["tensors"]].tolist() == [2, 2, 2]
    rows.collect()  # nothing new: nothing changes
    assert np.array_equal(rows.matrix, first)
    slots[1].fold(torch.ones(1, 6))
    rows.collect()
    assert rows.matrix[1, INDEX["tensors"]] == 3
    assert slots[1].bits.tolist() == [1] * 6
    assert rows.matrix[1, INDEX["active"]] == 6


def test_the_torch_kernel_says_once_that_it_serves(monkeypatch):
    monkeypatch.setattr(binding, "fold", None)
    monkeypatch.setattr(binding, "has_warned", False)
    slot = Rows(1).slot(0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        slot.fold(torch.ones(3))
        slot.fold(torch.ones(3))
    (one,) = said
    assert one.category is binding.NoNativeKernelWarning
    assert "without its native kernel" in str(one.message)
    assert rows_file.binding is binding


def test_where_warnings_are_errors_a_summary_is_made_all_the_same(monkeypatch):
    monkeypatch.setattr(binding, "fold", None)
    monkeypatch.setattr(binding, "has_warned", False)
    rows = Rows(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows.slot(0).fold(torch.ones(3))
    rows.collect()
    assert rows.matrix[0, INDEX["tensors"]] == 1
