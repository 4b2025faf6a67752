"""Numbers on their way from a device to the host.

    transfers = Transfers()
    transfers.put(vector, done)     # on the CPU `done` is called at once, else by a later `poll`
    transfers.keep(vector, done)    # `done` is called by the next `fetch`, on every device
    transfers.poll()                # once per step: hands on what has arrived, and never waits
    transfers.fetch()               # where devices are waited for anyway: one copy per device
    transfers.flush()               # at the end: waits for everything

Reading a number of a CUDA tensor (`item`, `tolist`) waits until the device has done everything that
was queued before it, which would stop the training thread in every step. A copy into pinned memory
does not wait; an event that is recorded after it tells when the numbers are there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from nethook.stats.torch_kernel import number_type

Done = Callable[[list[float]], None]

MOST = 64
"""Transfers under way; when there are more, the oldest are dropped. A device that is so far behind
would otherwise pin more and more of the host's memory."""


def fetched(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The same numbers on the CPU, in one dimension each: one copy per device, which waits for it.

    What differs in type on a device is converted to the number type of that device (float64 where
    it has it), so that one copy is enough.
    """
    by_device: dict[torch.device, list[int]] = {}
    for index, tensor in enumerate(tensors):
        by_device.setdefault(tensor.device, []).append(index)
    on_host: dict[int, torch.Tensor] = {}
    for device, indices in by_device.items():
        dtypes = {tensors[index].dtype for index in indices}
        dtype = dtypes.pop() if len(dtypes) == 1 else number_type(device)
        flat = [tensors[index].reshape(-1).to(dtype) for index in indices]
        pieces = torch.cat(flat).cpu().split([len(numbers) for numbers in flat])
        on_host.update(zip(indices, pieces, strict=True))
    return [on_host[index] for index in range(len(tensors))]


@dataclass(eq=False)
class _Transfer:
    host: torch.Tensor
    arrived: torch.Event
    done: Done


class Transfers:
    """Hands numbers on when they have arrived on the host.

    A device that cannot copy without waiting (it has no pinned memory, or no events) keeps its
    numbers until `fetch`.

    Arguments:
        most: transfers that may be under way, and as many that are kept; None is no limit.
    """

    def __init__(self, most: int | None = MOST) -> None:
        self.under_way: deque[_Transfer] = deque(maxlen=most)
        self._kept: deque[tuple[torch.Tensor, Done]] = deque(maxlen=most)
        self._waiting_devices: set[str] = set()  # types that cannot copy without waiting

    def __len__(self) -> int:
        return len(self.under_way) + len(self._kept)

    def put(self, vector: torch.Tensor, done: Done) -> None:
        """Takes a tensor of numbers; `done` gets them as a list once they have arrived."""
        device = vector.device.type
        if device == "cpu":
            done(vector.tolist())
            return
        if device not in self._waiting_devices:
            try:
                host = torch.empty(vector.shape, dtype=vector.dtype, pin_memory=True)
                arrived = torch.Event(vector.device)
                host.copy_(vector, non_blocking=True)
                arrived.record()
            except (RuntimeError, NotImplementedError):
                self._waiting_devices.add(device)
            else:
                self.under_way.append(_Transfer(host, arrived, done))
                return
        self.keep(vector, done)

    def keep(self, vector: torch.Tensor, done: Done) -> None:
        """Takes a tensor of numbers that stays where it is until `fetch`."""
        self._kept.append((vector, done))

    def poll(self) -> None:
        """Hands on what has arrived, in the order in which it was put."""
        while self.under_way and self.under_way[0].arrived.query():
            transfer = self.under_way.popleft()
            transfer.done(transfer.host.tolist())

    def fetch(self) -> None:
        """Fetches what was kept, and hands it on in order."""
        if not self._kept:
            return
        kept = list(self._kept)
        self._kept.clear()
        numbers = fetched([vector for vector, _ in kept])
        for (_, done), vector in zip(kept, numbers, strict=True):
            done(vector.tolist())

    def flush(self) -> None:
        """Waits for the rest: at the end of watching."""
        while self.under_way:
            transfer = self.under_way.popleft()
            transfer.arrived.synchronize()
            transfer.done(transfer.host.tolist())
        self.fetch()
