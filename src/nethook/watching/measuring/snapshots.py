"""Outputs of a few samples at growing intervals, for pictures over training."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.hooks.autograd.compact import compact_clone
from nethook.hooks.hook import Owner
from nethook.hooks.modes import quiet
from nethook.stats.native import readable
from nethook.torch_private import backward_id
from nethook.watching import budget
from nethook.watching.journal import Journal
from nethook.watching.measuring.taps import WatchHook
from nethook.watching.recorder import Recorder

_now = time.perf_counter


MOST_ELEMENTS = 1 << 26
"""Elements of one snapshot; an output that has more, as only an expanded one has, is not kept."""


def is_due(step: int) -> bool:
    """Whether a snapshot is taken at a step: 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, …"""  # noqa: D415
    high = 1 << (step.bit_length() - 1) if step else 0
    return step < 4 or step == high or step == high + high // 2


class Snapshots(Recorder):
    """What was taken and is still on its device: fetched when a window ends."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._taken: list[tuple[str, int, torch.Tensor]] = []

    def add(self, address: str, values: torch.Tensor) -> None:
        """Keeps a copy of outputs, where they are."""
        self._taken.append((address, self._journal.step, compact_clone(values.detach())))

    def end_window(self) -> None:
        """Hands everything to the writer."""
        taken, self._taken = self._taken, []
        for address, step, values in taken:
            values = values.abs() if values.is_complex() else values
            self._journal.writer.snapshot(address, step, values.float().cpu().numpy())


class SnapshotTap(WatchHook):
    """After the forward of a site of which outputs are kept."""

    __slots__ = ("_last", "journal", "samples", "store")

    def __init__(
        self, owner: Owner, address: str, journal: Journal, store: Snapshots, samples: int
    ) -> None:
        super().__init__(owner, address, journal.guard)
        self.journal = journal
        self.store = store
        self.samples = samples
        self._last = -1

    def __call__(self, module: nn.Module, args: Any, *rest: Any) -> None:
        """Keeps the first samples of the first call of a step that is due."""
        if torch.compiler.is_compiling() or self.off or not self.guard.alive:
            return
        clock = self.journal.clock
        start = _now()
        try:
            due = clock.calls.training and clock.step != self._last and backward_id() == -1
            if due and is_due(clock.step):
                with quiet():
                    self.keep(rest[-1])
        except Exception as error:
            self.failed(error)
        self.journal.schedule.spent[budget.OTHER] += _now() - start

    def keep(self, output: Any) -> None:
        """Keeps the first samples of an output."""
        for _, tensor in tensors(output)[:1]:
            if tensor.dim() and readable.is_readable(tensor):
                self._last = self.journal.step
                few = tensor[: self.samples]
                if few.numel() <= MOST_ELEMENTS:
                    self.store.add(self.address, few)


def checked(snapshots: Mapping[str, int]) -> dict[str, int]:
    """The option as it was given, or an error that says what is wrong with it."""
    from nethook.errors import OptionError

    for address, samples in snapshots.items():
        if type(samples) is not int or samples < 1:
            raise OptionError(
                f"`snapshots` must give each layer a number of samples, at least 1; got "
                f"{samples!r} for {address!r}. Pass, for instance, snapshots={{'conv1': 8}}."
            )
    return dict(snapshots)
