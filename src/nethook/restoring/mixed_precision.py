"""Mixed precision (`torch.autocast`): how it was set, and a block in which it is set so again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import torch

from nethook.torch_private import is_autocast


def autocast_now() -> dict[str, str]:
    """Device -> type, where it is on; nothing, as nearly always."""
    if not is_autocast():
        return {}
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    devices = ("cpu",) if accelerator is None else ("cpu", accelerator.type)
    return {
        device: str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        for device in devices
        if torch.is_autocast_enabled(device)
    }


@contextmanager
def autocast_as(states: Mapping[str, str]) -> Iterator[None]:
    """A block in which it is on as `autocast_now` has said, and off elsewhere."""
    now = autocast_now()
    if now == states:
        yield
        return
    with ExitStack() as stack:
        for device in now.keys() - states.keys():
            stack.enter_context(torch.autocast(device, enabled=False))
        for device, dtype in states.items():
            stack.enter_context(torch.autocast(device, dtype=getattr(torch, dtype)))
        yield
