"""What Python fills in is what the native kernel reads: size, members and places."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from nethook.stats.native import kernel, structs

needs_kernel = pytest.mark.skipif(kernel.functions is None, reason="there is no native kernel")


@needs_kernel
@pytest.mark.parametrize("name", structs.STRUCTS)
def test_both_sides_agree(name):
    size, members = kernel.functions.STRUCTS[name]
    struct = structs.STRUCTS[name]
    assert ctypes.sizeof(struct) == size
    assert [member[0] for member in struct._fields_] == list(members)
    for member, (offset, bytes_) in members.items():
        assert (getattr(struct, member).offset, getattr(struct, member).size) == (offset, bytes_)


@needs_kernel
def test_the_kernel_has_no_struct_that_is_not_here():
    assert set(kernel.functions.STRUCTS) == set(structs.STRUCTS)
    assert structs.agree(kernel.functions.STRUCTS)


def test_a_kernel_that_reads_them_otherwise_is_not_taken(monkeypatch):
    theirs = {name: structs.layout(struct) for name, struct in structs.STRUCTS.items()}
    assert structs.agree(theirs)
    size, members = theirs["Slot"]
    swapped = {**members, "bits": members["units"], "units": members["bits"]}
    assert not structs.agree({**theirs, "Slot": (size, swapped)})
    assert not structs.agree({**theirs, "Slot": (size + 8, members)})
    assert not structs.agree(None)
    if kernel.functions is not None:
        monkeypatch.setattr(kernel.functions, "STRUCTS", {**theirs, "Slot": (size, swapped)})
        assert kernel._load() is None


def test_members_are_words_without_gaps():
    for struct in structs.STRUCTS.values():
        size, members = structs.layout(struct)
        assert size == 8 * len(members)
        assert list(members.values()) == [(8 * at, 8) for at in range(len(members))]


def test_a_table_of_lines_has_the_members_of_one():
    dtype = np.dtype(structs.LineStruct)
    size, members = structs.layout(structs.LineStruct)
    assert dtype.itemsize == size
    assert {name: dtype.fields[name][1] for name in dtype.names} == {
        name: offset for name, (offset, _) in members.items()
    }
