"""What examinations may cost: seconds of the run, and memory beside the script's own.

At most 1 % of the run, but at least 1 s and never more than 2 s of work, and never more than 8 s of
the clock: on a busy machine a second of work takes longer. Memory is estimated before
anything is copied or run: above half of what is free, nothing is.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import torch

from nethook.restoring.randomness import devices_in_use

SHARE: Final = 0.01
LEAST: Final = 1.0
MOST: Final = 2.0
CLOCK: Final = 8.0
"""Seconds after which examining ends, however little of them was ours."""
FREE_SHARE: Final = 0.5

_CGROUP: Final = Path("/sys/fs/cgroup")
_MEMINFO: Final = Path("/proc/meminfo")


class Deadline:
    """When examining ends: after so many seconds of this thread's work, or of the clock.

    Work counts, so that a machine that is busy with other things does not cost results.

    Arguments:
        seconds: of work.
        most: of the clock.
    """

    def __init__(self, seconds: float, most: float = CLOCK) -> None:
        self._work = time.thread_time() + seconds
        self._clock = time.perf_counter() + most

    def left(self) -> float:
        """Seconds until then; negative when it is over."""
        return min(self._work - time.thread_time(), self._clock - time.perf_counter())


def seconds_left(elapsed: float, spent: float) -> float:
    """Seconds that examinations may still take, of a run that has taken `elapsed` so far."""
    return max(0.0, min(MOST, max(LEAST, SHARE * elapsed)) - spent)


def why_too_large(needed: int, device: torch.device | None = None) -> str:
    """Why so many bytes are not taken, in words; "" where they may be, or nobody knows."""
    free = free_bytes(device)
    if free is None or needed <= FREE_SHARE * free:
        return ""
    return f"it would take {_shown(needed)} more, and {_shown(free)} are free"


def free_bytes(device: torch.device | None = None) -> int | None:
    """Bytes of memory that are free on a device; None where that is not known."""
    if device is not None and device.type != "cpu":
        devices = devices_in_use(device.type)
        ask = getattr(devices, "mem_get_info", None)
        return None if ask is None else int(ask(device)[0])
    known = [
        bytes_free for bytes_free in (_available(), _left_in_group()) if bytes_free is not None
    ]
    return min(known, default=None)


def _available() -> int | None:
    """What the kernel says it can give without swapping."""
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None


def _left_in_group() -> int | None:
    """What a container may still take; the files that it has read can be dropped."""
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        if limit == "max":
            return None
        used = int((_CGROUP / "memory.current").read_text())
        for line in (_CGROUP / "memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):
                used -= int(line.split()[1])
        return max(0, int(limit) - used)
    except (OSError, ValueError, IndexError):
        return None


def _shown(size: int) -> str:
    return f"{size / (1 << 30):,.1f} GB" if size >= 1 << 30 else f"{max(1, size >> 20):,} MB"
