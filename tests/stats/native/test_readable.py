"""Every kind of tensor that torch can make: read right, or counted by its kind; none changed."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from nethook.stats.native import binding, readable
from nethook.stats.rows import Rows
from tests.stats.reference import assert_close, reference_row, tolerance_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype"),
    pytest.mark.filterwarnings("ignore:.*quantize_per_:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sparse .* support is in beta"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks"),
    pytest.mark.filterwarnings("ignore:.*sparse_bs[rc].*"),
    pytest.mark.filterwarnings("ignore:`torch.jit"),  # torch scripts formulas
]


class Labelled(torch.Tensor):
    """A subclass with no dispatch of its own."""


class Wrapped(torch.Tensor):
    """A subclass that stands for another tensor and has no memory."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"an observer must not call {func}")


def fold(tensor, **options):
    rows = Rows(1, limit=2**62)
    slot = rows.slot(0, **options)
    slot.fold(tensor)
    rows.collect()
    return rows.matrix[0], rows.histograms[0], slot


def base():
    x = torch.linspace(-3, 3, 60).reshape(3, 4, 5)
    x[0, 0, 0] = math.nan
    x[1, 1, 1] = math.inf
    return x


def dense_kinds():
    """name -> (tensor, the plain tensor that it means)."""
    x = base()
    c = torch.complex(x, x.flip(0))
    made = {
        "plain": x,
        "transposed": x.transpose(0, 2),
        "strided": x[:, ::2, 1::3],
        "expanded": x[:, :1].expand(3, 7, 5),
        "expanded-all": torch.tensor(2.0).expand(4, 5),
        "as_strided-overlapping": x.as_strided((5, 6), (2, 1), 3),
        "unfolded": x.unfold(2, 3, 1),
        "diagonal": torch.diagonal(x, dim1=1, dim2=2),
        "narrow": x.narrow(1, 1, 2),
        "flipped": x.flip(0, 1),
        "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "channels_last_3d": torch.randn(2, 3, 2, 4, 5).to(memory_format=torch.channels_last_3d),
        "complex": c,
        "conj": c.conj(),
        "conj-strided": c.conj().transpose(0, 1)[::2],
        "real-of-conj": c.conj().imag,  # has the negative bit
        "neg": torch._neg_view(x),
        "neg-complex": torch._neg_view(c),
        "conj-neg": torch._neg_view(c.conj()),
        "real": c.real,
        "imag": c.imag,
        "zero tensor": torch._efficientzerotensor(3, 4),
        "bool view": (x > 0).view(torch.uint8),
        "other dtype": x.view(torch.int32),
        "numpy": torch.from_numpy(np.arange(12.0).reshape(3, 4)[::1, ::2]),
        "requires grad": x.clone().requires_grad_(),
        "in a graph": x.clone().requires_grad_() * 2,
        "parameter": nn.Parameter(x.clone()),
        "buffer": nn.Buffer(x.clone()),
        "lazy copy": torch._lazy_clone(x),
        "view of a lazy copy": torch._lazy_clone(x)[1:, ::2],
        "0-d": torch.tensor(1.5),
        "empty": torch.empty(0, 3),
        "64 dims": torch.randn(2, 3).reshape(2, 3, *[1] * 62),
        "shared memory": x.clone().share_memory_(),
    }
    with torch.inference_mode():
        made["inference"] = x * 1
    return made


DENSE = dense_kinds()


@pytest.mark.parametrize("kernel", ["native", "torch"])
@pytest.mark.parametrize("name", DENSE)
def test_a_dense_tensor_is_read_right(name, kernel, monkeypatch):
    tensor = DENSE[name]
    if kernel == "torch":
        monkeypatch.setattr(binding, "fold", None)
        monkeypatch.setattr(binding, "_said", True)
    elif binding.fold is None:
        pytest.skip("there is no native kernel here")
    for unit_dim in (None, *range(min(tensor.dim(), 4))):
        row, histogram, slot = fold(tensor, unit_dim=unit_dim)
        assert not slot.skipped
        plain = tensor.detach().resolve_conj().resolve_neg().clone()
        expected, bins, bits = reference_row(plain, unit_dim=unit_dim)
        assert_close(row, expected, tolerance_of(tensor.dtype))
        assert np.array_equal(histogram, bins)
        assert bits is None or np.array_equal(slot.bits, bits)


NEVER_NATIVE = ["conj", "conj-strided", "real-of-conj", "neg", "neg-complex", "conj-neg"]


@pytest.mark.parametrize("name", [*NEVER_NATIVE, "zero tensor"])
def test_lazy_bits_keep_the_native_kernel_away(name):
    assert not readable.is_plain(DENSE[name])


@pytest.mark.parametrize("name", sorted(set(DENSE) - set(NEVER_NATIVE) - {"zero tensor"}))
def test_plain_tensors_take_the_native_kernel(name):
    assert readable.is_plain(DENSE[name])


def other_kinds():
    x = torch.linspace(-1, 1, 16).reshape(4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = {
            "sparse coo": (x.to_sparse(), "sparse"),
            "sparse csr": (x.to_sparse_csr(), "sparse"),
            "sparse csc": (x.to_sparse_csc(), "sparse"),
            "sparse bsr": (x.to_sparse_bsr((2, 2)), "sparse"),
            "sparse bsc": (x.to_sparse_bsc((2, 2)), "sparse"),
            "hybrid": (x.to_sparse(1), "sparse"),
            "quantized": (torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "quantized"),
            "quantized by channel": (
                torch.quantize_per_channel(x, torch.ones(4), torch.zeros(4), 0, torch.quint8),
                "quantized",
            ),
            "nested": (torch.nested.nested_tensor([x, x[:2]]), "nested"),
            "jagged": (torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged), "nested"),
            "meta": (x.to("meta"), "meta"),
            "subclass": (x.as_subclass(Labelled), "subclass"),
            "wrapper": (Wrapped(x), "subclass"),
            "functional": (torch._to_functional_tensor(x), "functional"),
            "uninitialized": (nn.UninitializedParameter(), "uninitialized"),
            "uninitialized buffer": (nn.parameter.UninitializedBuffer(), "uninitialized"),
        }
        freed = torch.ones(5, 3)
        freed.untyped_storage().resize_(0)
        made["freed"] = (freed, "freed")
        if torch.backends.mkldnn.is_available():
            made["mkldnn"] = (x.to_mkldnn(), "mkldnn")
        with torch._subclasses.FakeTensorMode() as mode:
            made["fake"] = (mode.from_tensor(x), "fake")
    return made


OTHERS = other_kinds()


@pytest.mark.parametrize("name", OTHERS)
def test_what_cannot_be_read_is_counted_by_its_kind(name):
    tensor, kind = OTHERS[name]
    assert not readable.is_plain(tensor) or kind == "freed"
    row, histogram, slot = fold(tensor, unit_dim=0)
    assert dict(slot.skipped) == {kind: 1}
    assert row[1] == 1
    assert row[[0, 2, 3, 4, 5, 6]].tolist() == [0] * 6
    assert not histogram.any()


def test_functorch_wrappers_are_counted_and_left_alone():
    seen = []

    def look(x):
        _, _, slot = fold(x, unit_dim=0)
        seen.append(dict(slot.skipped))
        return (x * x).sum()

    x = torch.randn(3, 4)
    torch.func.vmap(look)(x)
    torch.func.grad(look)(x)
    torch.func.jvp(look, (x,), (x,))
    torch.func.vmap(torch.func.grad(look))(x)
    torch.func.jacrev(look)(x)
    assert seen[0] == seen[1] == seen[3] == seen[4] == {"functorch": 1}


def test_a_dual_number_is_read_by_its_primal():
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(3), torch.full((3,), 9.0))
        row, _, slot = fold(dual)
    assert not slot.skipped
    assert row[11] == 1.0


@pytest.mark.parametrize("limit", [10, 2**62])
def test_a_lazy_copy_is_not_made_real_by_reading_it(limit):
    x = torch.randn(300)
    lazy = torch._lazy_clone(x)
    rows = Rows(1, limit=limit)
    slot = rows.slot(0, unit_dim=0, bounds=(0.0, 1.0))
    for each in (lazy, x, lazy[3:], lazy.view(10, 30).T):
        slot.fold(each)
    assert torch._C._is_cow_tensor(lazy)
    assert torch._C._is_cow_tensor(x)


def test_the_test_for_lazy_copies_can_fail():
    lazy = torch._lazy_clone(torch.randn(3))
    lazy.data_ptr()
    assert not torch._C._is_cow_tensor(lazy)


@pytest.mark.parametrize("name", [*NEVER_NATIVE, "plain", "in a graph", "expanded"])
def test_reading_changes_nothing(name):
    tensor = DENSE[name]
    before, version = tensor.detach().clone(), tensor._version
    state = torch.get_rng_state()
    fold(tensor, unit_dim=0)
    assert torch.equal(tensor.detach().nan_to_num(), before.nan_to_num())
    assert tensor._version == version
    assert torch.equal(torch.get_rng_state(), state)
    if tensor.grad_fn is not None:
        assert tensor._backward_hooks is None


def test_the_native_kernel_is_here_if_it_was_built():
    """A guard against testing the torch kernel alone by mistake."""
    import importlib.util

    if importlib.util.find_spec("nethook.stats.native._native") is not None:
        assert binding.fold is not None
        assert binding.instruction_set() in {"baseline", "avx2", "avx512"}


def test_the_native_kernel_refuses_nonsense():
    if binding.fold is None:
        pytest.skip("there is no native kernel here")
    for arguments in (
        (0, 0, 99, (), (), 0, 0, 0, 1, 0, 0, 0.0, 0.0, 1.0),
        (0, 0, 11, (3,), (), 0, 0, 0, 1, 0, 0, 0.0, 0.0, 1.0),
        (0, 0, 11, (1,) * 65, (1,) * 65, 0, 0, 0, 1, 0, 0, 0.0, 0.0, 1.0),
        (0, 0, 11, (3,), (1,), 0, 0, 0, 0, 0, 0, 0.0, 0.0, 1.0),
        (0, 0, 11, (3,), (1,), 0, 0, 0, 1, 8, 1, 0.0, 0.0, 1.0),
    ):
        with pytest.raises(ValueError, match="was given what it does not take"):
            binding.fold(*arguments)


def test_the_interpreter_is_free_while_a_large_tensor_is_read():
    """Another thread runs in the middle of one call."""
    if binding.fold is None:
        pytest.skip("there is no native kernel here")
    import threading
    import time

    x = torch.zeros(20_000_000)
    slot = Rows(1).slot(0)
    ticks, stop = 0, False

    def count():
        nonlocal ticks
        while not stop:
            ticks += 1
            time.sleep(0)  # lets go of the interpreter, so that this thread never blocks the other

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=count, daemon=True)
    try:
        sys.setswitchinterval(1000)  # nobody is made to let go: it happens on purpose or not at all
        thread.start()
        before = ticks
        slot.fold(x)
        assert ticks > before
    finally:
        stop = True
        sys.setswitchinterval(interval)
        thread.join(10)


MODES = [
    "with FakeTensorMode(): use(torch.ones(3))",
    "torch.func.grad(use)(torch.ones(3))",
    "torch.func.vmap(use)(torch.ones(3, 2))",
    "with torch.device('meta'): use(torch.ones(3))",
    "with torch.inference_mode(): use(torch.ones(3))",
]
IMPORTED = """
import os, sys, traceback
import torch
from torch._subclasses import FakeTensorMode
def use(x):
    assert "nethook.stats.native.readable" not in sys.modules
    from nethook.stats.native import readable
    return x.sum()
def is_imported(how):
    exec(how)
    from nethook.stats.native import readable
    assert readable.is_plain(torch.ones(3)) and len(readable.PLAIN) == 2
for how in sys.argv[1:]:
    child = os.fork()  # each is the first to import it
    if child == 0:
        try:
            is_imported(how)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture(scope="module")
def imported():
    """What came of it in each mode."""
    command = [sys.executable, "-c", IMPORTED, *MODES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(zip(MODES, map(int, done.stdout.split()), strict=True)), done.stderr


@pytest.mark.parametrize("how", MODES)
def test_the_guard_may_be_imported_in_any_mode(how, imported):
    codes, said = imported
    assert codes[how] == 0, said
