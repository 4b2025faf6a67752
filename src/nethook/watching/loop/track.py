"""What is known of one optimizer, and what one reads off it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from operator import methodcaller
from typing import Any

import torch

from nethook.hooks.process.origins import line_of_optimizer, lines_of_schedulers, steps_planned
from nethook.runs import names
from nethook.runs.secrets.masking import masked_setting
from nethook.stats.shards import local_part
from nethook.torch_private import version_of
from nethook.watching.journal import Journal
from nethook.watching.measuring.loop_numbers import Pending
from nethook.watching.measuring.parameters import ParameterSet

_rate_of = methodcaller("get", "lr")


class Track:
    """What is known of one optimizer."""

    def __init__(self, name: str, optimizer: torch.optim.Optimizer) -> None:
        self.name = name
        self.ref = weakref.ref(optimizer)
        self.type = type(optimizer).__name__
        self.reading = False  # its gradients are still to be read, after the closure
        self.sizes: list[int] = []  # parameters per group
        self.set: ParameterSet | None = None
        self.rates: list[float | None] = []
        self.settings: list[dict[str, object]] = []
        self.schedulers: list[str] = []  # the lines that made them
        # Gradients that its last step has used: (parameter, id, version). None where they were not
        # noted, for the loop clears its gradients.
        self.used: list[tuple[torch.Tensor, int, int]] | None = []
        self.mixed = False  # a backward pass has added to these, and nobody has cleared them
        self.before: tuple[list[int], list[Any]] | None = None  # its weights, when it began
        self.marks = False  # whether its steps are seen by the versions of its parameters

    def note_weights(self) -> None:
        """A step begins: notes by what one can tell whether it has changed the weights.

        Most optimizers raise the versions of their parameters. Fused ones, and those that write by
        way of `.data`, do not: of these a few coordinates are kept.
        """
        if self.set is not None:
            seen = self.set.witnesses
            versions = [*map(version_of, seen.few)]  # as `few_versions`, in every step
            self.before = versions, [] if self.marks else seen.some_weights()

    def note_versions(self) -> None:
        """A step has ended: notes whether versions alone would have told that it did something."""
        if self.before is not None and self.set is not None:
            self.marks = self.set.witnesses.few_versions() != self.before[0]

    def moved(self) -> bool:
        """Whether weights have changed since the step began, so far as one can tell."""
        if self.before is None or self.set is None:
            return False
        versions, weights = self.before
        seen = self.set.witnesses
        return seen.few_versions() != versions or seen.have_changed(weights)

    def rates_changed(self, groups: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a learning rate is not what it was when `note_rates` was called last."""
        return self.rates != [*map(_rate_of, groups)]

    def note_rates(
        self, journal: Journal, pending: Pending, optimizer: torch.optim.Optimizer
    ) -> None:
        """Notes the learning rates that have changed, and settings in some steps."""
        samples = journal.schedule.samples
        rates: list[float | None] = []
        for number, group in enumerate(optimizer.param_groups):
            rate = group.get("lr")
            before = self.rates[number] if number < len(self.rates) else None
            if isinstance(rate, torch.Tensor):
                if rate.device.type != "cpu":
                    pending.add(names.lr_name(self.name, number), rate)
                    rates.append(None)
                    continue
                rate = rate.item()
            if rate is not None and rate != before:
                journal.writer.log(names.lr_name(self.name, number), rate, journal.step)
            rates.append(rate)
        self.rates = rates
        if samples or not self.settings:
            settings = [settings_of(group) for group in optimizer.param_groups]
            schedulers = lines_of_schedulers(optimizer)
            if settings != self.settings or schedulers != self.schedulers:
                self.settings, self.schedulers = settings, schedulers
                data = {
                    "optimizer": self.name,
                    "type": self.type,
                    "line": line_of_optimizer(optimizer),
                    "schedulers": schedulers,
                    "planned": steps_planned(optimizer),
                    "groups": settings,
                    "parameters": self.sizes,
                    "fused": any(bool(group.get("fused")) for group in optimizer.param_groups),
                }
                message = f"settings of optimizer {self.name} ({self.type})"
                journal.note_event(names.GROUPS, message, data=data)


def is_there(grad: torch.Tensor) -> bool:
    """Whether a gradient that a step has used is still there, as it was or with more added."""
    # Zeroed by way of `.data`, the version is what it was.
    held = local_part(grad.detach())
    return held is None or held.device.type != "cpu" or bool(held.count_nonzero())


def settings_of(group: dict[str, Any]) -> dict[str, object]:
    """The settings of a group as plain data, without its parameters and its learning rate."""
    settings = {}
    for name, value in group.items():
        if name in ("params", "lr", "param_names"):
            continue
        if isinstance(value, torch.Tensor):
            value = value.item() if value.device.type == "cpu" and value.numel() == 1 else "tensor"
        settings[str(name)] = masked_setting(str(name), value)
    return settings
