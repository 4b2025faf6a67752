"""What is known of sites besides their numbers: how often they were called, in which mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from nethook.addresses.tree import ParameterSite, Site
from nethook.kinds.modules import bounds, kind_of
from nethook.runs import names
from nethook.stats.native import readable
from nethook.stats.sampling import both_parts, sampled
from nethook.stats.shards import Part, placements_of
from nethook.stats.tables import fingerprint
from nethook.stats.torch_kernel import number_type
from nethook.watching.facts.earlier import added, with_earlier
from nethook.watching.journal import Journal
from nethook.watching.loop.optimizers import Optimizers
from nethook.watching.measuring.device_flags import DeviceFlags
from nethook.watching.measuring.device_parameters import device_fingerprint, is_away
from nethook.watching.measuring.loop_numbers import Pending
from nethook.watching.measuring.parameter_facts import ParameterFacts
from nethook.watching.measuring.taps import OutputTap
from nethook.watching.recorder import Recorder

ROWS: Final = 512
"""Rows of a weight of which the distinct ones are counted."""
COLUMNS: Final = 1024
_SHOWN: Final = 200  # addresses that an event names


class SiteFacts:
    """One module: what never changes about it, and its tap, if it has one."""

    def __init__(
        self, address: str, site: Site, leaf: bool, parameters: list[str], tap: OutputTap | None
    ) -> None:
        self.address = address
        self.tap = tap
        module = site.module
        self.kind = type(module).__name__
        self.fixed: dict[str, Any] = {
            "order": site.order,
            "leaf": leaf,
            "names": list(site.names),
            "parameters": parameters,
        }
        if leaf:
            what = kind_of(module)
            if what is not None:
                self.fixed["activation"] = what
            ends = bounds(module)
            if ends is not None:
                self.fixed["bounds"] = list(ends)

    def info(self) -> dict[str, Any]:
        """Everything that is known."""
        tap = self.tap
        if tap is None:
            return self.fixed
        info = {
            **self.fixed,
            **tap.seen,
            "calls": {phase: count for phase, count in tap.calls.items() if phase != "off"},
            "modes": [list(change) for change in tap.modes],
        }
        if tap.first_call is not None:
            info["first_call"] = tap.first_call
        if tap.batch:
            info["batch"] = tap.batch
        return info


class Facts(Recorder):
    """All sites and parameters, and when they are written.

    Arguments:
        journal: where they go.
        optimizers: that hold the parameters.
        device_flags, pending: bring what is still on a device.
        sites, parameters: of all models.
    """

    rests = ("before_step",)

    def __init__(
        self,
        journal: Journal,
        optimizers: Optimizers,
        device_flags: DeviceFlags,
        pending: Pending,
        sites: Sequence[SiteFacts],
        parameters: Sequence[tuple[ParameterFacts, ParameterSite, Mapping[str, Any]]],
    ) -> None:
        self._journal = journal
        self._optimizers = optimizers
        self._device_flags = device_flags
        self._pending = pending
        self._sites = sites
        self._parameters = parameters
        self._told: dict[str, Any] = {}
        self._totals = journal.writer.earlier.get("totals")
        self._earlier = journal.writer.earlier_sites
        self._requires: dict[str, bool] = {}

    def pass_ended(self, phase: str) -> None:
        """A pass without gradient has ended: now its calls have a name."""
        for site in self._sites:
            tap = site.tap
            if tap is not None and tap.calls["off"]:
                tap.calls[phase] += tap.calls["off"]
                tap.calls["off"] = 0
                tap.pass_was(phase)

    def end_step(self, step: int) -> None:
        """A step has ended; the first ones are told at once."""
        done = step - self._journal.clock.first_step
        if self._journal.schedule.samples:
            self._optimizers.held.settle_later(self._device_flags)
        if done in (0, 3):
            self.write()
        if done & (done - 1) == 0:  # 0, 1, 2, 4, 8, …: the same steps on every rank
            self._mark_parameters(step)

    def _mark_parameters(self, step: int) -> None:
        """A number that ranks with the same parameters share."""
        marks: dict[Part, list[float]] = {}
        away: dict[Part, list[torch.Tensor]] = {}
        for facts, _, _ in self._parameters:
            tensor = facts.local.detach()
            if is_away(tensor):
                device_mark = device_fingerprint(tensor)
                if device_mark is not None:
                    away.setdefault(facts.part, []).append(device_mark)
                continue
            mark = fingerprint(tensor)
            if mark is not None:
                marks.setdefault(facts.part, []).append(mark)
        for shard, tensors in away.items():
            stacked = torch.stack([mark.to(tensors[0].device) for mark in tensors])
            positions = torch.arange(1, len(tensors) + 1, device=stacked.device)
            mixed = (stacked * positions).sum() & ((1 << 52) - 1)
            self._pending.add(names.fingerprint_name(*shard), mixed)
        for shard, shard_marks in marks.items():
            total = sum(
                position * int(mark) for position, mark in enumerate(shard_marks, start=1)
            ) % (1 << 52)
            self._journal.writer.log(names.fingerprint_name(*shard), float(total), step)

    def write(self) -> None:
        """Brings the file up to date."""
        journal, writer = self._journal, self._journal.writer
        self._optimizers.held.settle()
        for site in self._sites:
            self._tell(site.address, site.kind, site.info())
        frozen: dict[str, bool] = {}
        for facts, _, fixed in self._parameters:
            tensor = facts.parameter
            info = {
                **fixed,
                "device": str(tensor.device),
                "requires_grad": tensor.requires_grad,
                "groups": [list(group) for group in facts.groups],
                "steps": facts.steps,
                "with_grad": facts.with_grad,
                "moved": facts.moved,
                **facts.rows,
            }
            if facts.held is not None:
                info["placements"] = placements_of(tensor)
                info["local_shape"] = list(facts.local.shape)
            required = self._requires.get(facts.address)
            if required is not None and required is not tensor.requires_grad:
                frozen[facts.address] = tensor.requires_grad
            self._requires[facts.address] = tensor.requires_grad
            self._tell(facts.address, "Parameter", info)
        if frozen:
            data = {"requires_grad": dict(list(frozen.items())[:_SHOWN])}
            said = f"requires_grad of {len(frozen)} parameters changed"
            journal.event(names.PARAMETERS, said, data=data)
        self.end_window()
        writer.info(
            overhead=journal.schedule.budget.overhead,
            cost=journal.schedule.budget.as_dict(),
            memory=self.memory(),
        )

    def close(self) -> None:
        """Watching ends."""
        self.write()

    def end_window(self) -> None:
        """Has the totals written, with the window that goes to the file: a kill leaves both."""
        clock = self._journal.clock
        steps = {
            track.name: clock.turns.counts.get(key, 0)
            for key, track in self._optimizers.tracks.items()
        }
        totals: dict[str, Any] = {**clock.totals, "optimizer_steps": steps}
        if self._totals is not None:
            totals = added(totals, self._totals)
        self._journal.writer.info(totals=totals)

    def memory(self) -> dict[str, int]:
        """Bytes that the watch holds on to."""
        catalogue = self._journal.catalogue
        return {
            "series": len(catalogue.keys),
            "rows": catalogue.capacity * (18 * 8 + 645 * 8 + 24),
            "snapshot": self._optimizers.held.memory,
            "snapshot_cap": self._journal.options.snapshot_cap,
        }

    def _tell(self, address: str, kind: str, info: dict[str, Any]) -> None:
        if address in self._earlier:
            first = self._journal.clock.first_step
            info = with_earlier(info, self._earlier[address][1], first)
        if self._told.get(address) != info:
            self._told[address] = dict(info)
            self._journal.writer.add_site(address, kind, info)

    # -- rows of weights ----------------------------------------------------------------------

    def before_step(self, parameters: Sequence[ParameterFacts]) -> None:
        """At the first four steps: how many rows of each weight, and of its gradient, differ.

        A matrix may have its units in columns, so these are counted as well.
        """
        clock = self._journal.clock
        step = clock.step - clock.first_step
        if step > 3:
            return
        for facts in parameters:
            weight = facts.local.detach()
            if weight.dim() < 2 or not weight.numel() or not readable.is_readable(weight):
                continue
            rows = facts.rows
            rows["rows"] = min(ROWS, weight.shape[0])
            grad = facts.grad
            fed = grad is not None and readable.is_readable(grad)
            matrix = weight.dim() == 2 and min(weight.shape) > 1
            for name, along in (("rows", 0), ("columns", 1))[: 1 + matrix]:
                count = distinct_rows(weight.movedim(along, 0), 1e-13)
                self._count(rows, f"distinct_{name}", str(step), count)
                if fed and grad is not None:
                    # Equal units get gradients equal up to the rounding of a matrix product.
                    near = 4 * torch.finfo(grad.dtype).eps
                    count = distinct_rows(grad.detach().movedim(along, 0), near)
                    self._count(rows, f"distinct_grad_{name}", str(step), count)

    def _count(self, rows: dict[str, Any], name: str, step: str, count: torch.Tensor) -> None:
        """Notes a count: at once, or when it has come from a device."""

        def done(numbers: list[float]) -> None:
            rows[name] = {**rows.get(name, {}), step: int(numbers[0])}

        self._device_flags.put(count.reshape(1), done)


def distinct_rows(matrix: torch.Tensor, tolerance: float) -> torch.Tensor:
    """Different rows among the first 512, told apart by a sum with weights of their elements."""
    if not matrix.numel():
        return torch.zeros(())
    real = number_type(matrix.device)
    some = both_parts(sampled(matrix[:ROWS], COLUMNS, dim=1, step=1)).to(real)
    weights = torch.arange(1, some.shape[1] + 1, dtype=real, device=some.device).sin()
    marks = (some @ weights).sort().values
    # Sums of equal rows may differ in the last bit: the order of adding is the kernel's affair.
    near = tolerance * (some.abs() @ weights.abs()).max()
    # Of what is no number it is not known that it is the same: NaN is no gap, and no equality.
    return (~(marks[1:] - marks[:-1] <= near)).sum() + 1
