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
    """

    def __init__(self) -> None:
        self._under_way: deque[_Transfer] = deque(maxlen=MOST)

    def __len__(self) -> int:
        return len(self._under_way)

    def put(self, vector: torch.Tensor, done: Done) -> None:
        """Takes a tensor of numbers; `done` gets them as a list."""
        if vector.device.type == "cpu":
            done(vector.tolist())
            return
        host = torch.empty(vector.shape, dtype=vector.dtype, pin_memory=True)
        host.copy_(vector, non_blocking=True)
        arrived = torch.Event(vector.device)
        arrived.record()
        self._under_way.append(_Transfer(host, arrived, done))

    def poll(self) -> None:
        """Hands on what has arrived, in the order in which it was put."""
        while self._under_way and self._under_way[0].arrived.query():
            transfer = self._under_way.popleft()
            transfer.done(transfer.host.tolist())

    def flush(self) -> None:
        """Waits for the rest: at the end of watching."""
        while self._under_way:
            transfer = self._under_way.popleft()
            transfer.arrived.synchronize()
            transfer.done(transfer.host.tolist())
