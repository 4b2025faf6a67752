"""What the native kernel is told where numbers go: the structs of structs.h, member by member.

Each is filled in here and read there; an address is that of an array which whoever fills it in
keeps alive. `agree` compares both sides.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import c_double, c_int64, c_void_p
from typing import Final

NO_UNITS: Final = -(1 << 63)
"""The dimension of units of a slot that has none."""


class RowsStruct(ctypes.Structure):
    """Where the tensors of many series go: `rows.Rows`."""

    _fields_ = (
        ("rows", c_void_p),
        ("histograms", c_void_p),
        ("seen", c_void_p),
        ("before", c_void_p),
        ("turns", c_void_p),
        ("limit", c_int64),
    )


class SlotStruct(ctypes.Structure):
    """Where the tensors of one series go: `rows.Slot`."""

    _fields_ = (
        ("rows", c_void_p),
        ("row", c_int64),
        ("binned", c_int64),
        ("bits", c_void_p),
        ("units", c_int64),
        ("unit_dim", c_int64),
        ("low", c_double),
        ("high", c_double),
    )


class LineStruct(ctypes.Structure):
    """One line of a table of tensors: `tables.Table` has an array of them."""

    _fields_ = (
        ("address", c_int64),
        ("elements", c_int64),
        ("type", c_int64),
        ("row", c_int64),
        ("minus", c_int64),
        ("copy", c_int64),
        ("factor", c_double),
        ("odd", c_int64),
        ("square", c_double),
    )


class ClosingStruct(ctypes.Structure):
    """What a sheet needs before it can be packed: `rows.Rows.note_units`."""

    _fields_ = (
        ("rows", c_void_p),
        ("used", c_int64),
        ("series", c_void_p),
        ("slots", c_void_p),
        ("slot_count", c_int64),
        ("offsets", c_void_p),
        ("room", c_int64),
        ("bits", c_void_p),
        ("clears", c_int64),
    )


STRUCTS: Final[Mapping[str, type[ctypes.Structure]]] = {
    "Rows": RowsStruct,
    "Slot": SlotStruct,
    "Line": LineStruct,
    "Closing": ClosingStruct,
}
"""Name in structs.h -> the same here."""


def layout(struct: type[ctypes.Structure]) -> tuple[int, dict[str, tuple[int, int]]]:
    """The bytes of a struct, and where each member begins and how many bytes it has."""
    members = {name: getattr(struct, name) for name, *_ in struct._fields_}
    return ctypes.sizeof(struct), {name: (at.offset, at.size) for name, at in members.items()}


def agree(theirs: object) -> bool:
    """Whether a kernel reads the structs as they are filled in here; `theirs` is its STRUCTS."""
    return theirs == {name: layout(struct) for name, struct in STRUCTS.items()}
