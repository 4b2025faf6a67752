"""Asking the kernel to refuse writes outside a folder, and connections: Linux's Landlock.

The audit hook of Python sees what Python code does. `torch.save`, `safetensors` and other native
code open files themselves. On Linux from 5.13 on a process can give up rights for good, without
being privileged; what it starts inherits that. Where the kernel has no Landlock nothing is done,
and `lock` says so.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

# The same numbers on every architecture.
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVILEGES: Final = 38
_VERSION: Final = 1  # the flag with which `create` returns the version
_BENEATH: Final = 1  # the kind of a rule about a path

_WRITE_FILE: Final = 1 << 1
_TRUNCATE: Final = 1 << 14  # from version 3
_REFER: Final = 1 << 13  # from version 2: links and renames between folders
# Removing and making: folders, files, devices, sockets, pipes, links.
_ENTRIES: Final = sum(1 << bit for bit in range(4, 13))
_BIND_AND_CONNECT: Final = 0b11  # TCP, from version 4
_SIGNALS_AND_SOCKETS: Final = 0b11  # to processes outside, from version 6

_DEVICES: Final = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"),
    *("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dri", "/dev/kfd"),
    *(f"/dev/nvidia{number}" for number in range(16)),
)


def lock(folder: str) -> bool:
    """Gives up, for this process and for good, to write outside a folder and to connect.

    Called while there is one thread: those that start later inherit it.

    Returns:
        Whether the kernel does it.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, 0, _VERSION)
    if version < 1:
        return False
    files = _WRITE_FILE | _ENTRIES
    files |= _REFER if version >= 2 else 0
    files |= _TRUNCATE if version >= 3 else 0
    attributes = struct.pack(
        "QQQ",
        files,
        _BIND_AND_CONNECT if version >= 4 else 0,
        _SIGNALS_AND_SOCKETS if version >= 6 else 0,
    )
    # An older kernel knows the first one or two of them.
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = libc.syscall(_CREATE, attributes, size, 0)
    if rules < 0:
        return False
    try:
        _allow(libc, rules, files, [folder])
        _allow(libc, rules, files & (_WRITE_FILE | _TRUNCATE), _DEVICES)
        privileges = libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return bool(privileges == 0 and libc.syscall(_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, rights: int, paths: Sequence[str]) -> None:
    for path in paths:
        with suppress(OSError):
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                about = struct.pack("=Qi", rights, place)
                libc.syscall(_ADD, rules, _BENEATH, about, 0)
            finally:
                os.close(place)
