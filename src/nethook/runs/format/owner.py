"""Who writes a run: a mark in the file, so that two writers never share it."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import time
from pathlib import Path
from typing import Any, Final

HEARTBEAT: Final = 60.0
"""Seconds after which a writer on another machine that gave no sign counts as gone."""


def this_process() -> dict[str, Any]:
    """The mark of this process."""
    return {**process(os.getpid()), "token": secrets.token_hex(8)}


def process(pid: int) -> dict[str, Any]:
    """What tells a process of this machine from others, and from later ones with its number."""
    return {"host": _host(), "pid": pid, "started": _started(pid)}


def is_alive(mark: Any, beat: Any) -> bool:
    """Whether the process of a mark still writes; `beat` is when it last did."""
    if not isinstance(mark, dict) or not isinstance(mark.get("pid"), int) or mark["pid"] <= 0:
        return False
    if mark.get("host") == _host():
        # The same machine knows for certain, also right after a kill −9.
        return _exists(mark["pid"]) and _started(mark["pid"]) == mark.get("started")
    return isinstance(beat, int | float) and time.time() - beat < HEARTBEAT


def _host() -> str:
    """This machine since it started; in a container, this container."""
    parts = [platform.node()]
    for name in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            path = Path(name)
            parts.append(str(path.readlink()) if path.is_symlink() else path.read_text().strip())
        except OSError:
            continue  # not Linux
    # The file is to be shared, and the name of a machine is nobody's business.
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def _exists(pid: int) -> bool:
    if os.name == "nt":  # pragma: no cover  (signal 0 would end the process there)
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _started(pid: int) -> str:
    """When a process started, in the clock's own ticks: numbers of processes are used again."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        state, *rest = stat.rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "gone" if state in "ZX" else rest[18]
