"""Numbers that are still on their way from a device."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch

Done = Callable[[list[float]], None]

MOST = 64
"""Numbers under way; when there are more, the oldest are given up."""


@dataclass
class _Transfer:
    host: torch.Tensor
    arrived: torch.Event
    done: Done


class Late:
    """Hands numbers on when they have arrived on the host, without ever waiting for them.

    late.put(vector, done)     # on CPU `done` is called at once, else by a later `poll`
    late.poll()                # once a step
    late.fetch()               # when a window ends, and its numbers are waited for anyway

    A device that cannot copy without waiting (it has no pinned memory, or no events) keeps its
    numbers until `fetch`.
    """

    def __init__(self) -> None:
        self.under_way: deque[_Transfer] = deque(maxlen=MOST)
        self._kept: deque[tuple[torch.Tensor, Done]] = deque(maxlen=MOST)
        self._waits: set[str] = set()  # types of devices that cannot copy without waiting

    def __len__(self) -> int:
        return len(self.under_way) + len(self._kept)

    def put(self, vector: torch.Tensor, done: Done) -> None:
        """Takes a tensor of numbers; `done` gets them as a list."""
        kind = vector.device.type
        if kind == "cpu":
            done(vector.tolist())
            return
        if kind not in self._waits:
            try:
                host = torch.empty(vector.shape, dtype=vector.dtype, pin_memory=True)
                arrived = torch.Event(vector.device)
                host.copy_(vector, non_blocking=True)
                arrived.record()
            except (RuntimeError, NotImplementedError):
                self._waits.add(kind)
            else:
                self.under_way.append(_Transfer(host, arrived, done))
                return
        self._kept.append((vector, done))

    def poll(self) -> None:
        """Hands on what has arrived, in the order in which it was put."""
        while self.under_way and self.under_way[0].arrived.query():
            transfer = self.under_way.popleft()
            transfer.done(transfer.host.tolist())

    def fetch(self) -> None:
        """Fetches what could not be copied without waiting: one copy a device and type."""
        kept, self._kept = list(self._kept), deque(maxlen=MOST)
        groups: dict[tuple[torch.device, torch.dtype], list[int]] = {}
        for at, (vector, _) in enumerate(kept):
            groups.setdefault((vector.device, vector.dtype), []).append(at)
        found: dict[int, list[float]] = {}
        for places in groups.values():
            numbers = torch.cat([kept[at][0].reshape(-1) for at in places]).tolist()
            for at in places:
                count = kept[at][0].numel()
                found[at], numbers = numbers[:count], numbers[count:]
        for at, (_, done) in enumerate(kept):
            done(found[at])

    def flush(self) -> None:
        """Waits for the rest: at the end of watching."""
        while self.under_way:
            transfer = self.under_way.popleft()
            transfer.arrived.synchronize()
            transfer.done(transfer.host.tolist())
        self.fetch()
