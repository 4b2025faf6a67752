"""Every kind of tensor that torch can make: read right, or counted by its kind; none changed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from nethook.stats.native import binding, readable
from nethook.stats.rows import Rows
from tests.stats.native.tensors import DENSE, OTHERS
from tests.stats.reference import assert_close, reference_row, tolerance_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype"),
    pytest.mark.filterwarnings("ignore:.*quantize_per_:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sparse .* support is in beta"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks"),
    pytest.mark.filterwarnings("ignore:.*sparse_bs[rc].*"),
    pytest.mark.filterwarnings("ignore:`torch.jit"),  # torch scripts formulas
]


def fold(tensor, **options):
    rows = Rows(1, limit=2**62)
    slot = rows.slot(0, **options)
    slot.fold(tensor)
    rows.collect()
    return rows.matrix[0], rows.histograms[0], slot


@pytest.mark.parametrize("kernel", ["native", "torch"])
@pytest.mark.parametrize("name", DENSE)
def test_a_dense_tensor_is_read_right(name, kernel, monkeypatch):
    tensor = DENSE[name]
    if kernel == "torch":
        monkeypatch.setattr(binding, "fold", None)
        monkeypatch.setattr(binding, "has_warned", True)
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
