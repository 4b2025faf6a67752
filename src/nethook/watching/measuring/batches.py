"""What goes into a model as a whole, and what comes out of it."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.addresses.paths import Path, show_path
from nethook.hooks.modes import unrecorded
from nethook.runs import names
from nethook.stats.native import readable
from nethook.stats.rows import Slot
from nethook.stats.sampling import both_parts, sampled
from nethook.stats.shards import local_part
from nethook.stats.tables import fingerprint
from nethook.stats.torch_kernel import number_type
from nethook.watching.journal import Flags, Journal
from nethook.watching.measuring.device_parameters import device_fingerprint, is_away
from nethook.watching.measuring.loop_numbers import LoopNumbers
from nethook.watching.measuring.taps import described
from nethook.watching.recorder import Recorder

MOST_INPUTS: Final = 8
"""Tensors among the arguments that are measured."""
MOST_SIZES: Final = 8
"""Sizes of batches in evaluations that are kept."""
SAMPLES: Final = 64
ELEMENTS: Final = 1024
DISTINCT: Final = 4096
_ONLY: Final = tensors(((torch.empty(0),), {}))[0][0]  # the path of an only argument


class Batches(Recorder):
    """Measures inputs and outputs of outermost calls."""

    rests = ("call_begins", "call_ends")

    def __init__(self, journal: Journal, numbers: LoopNumbers, flags: Flags) -> None:
        self._journal = journal
        self._numbers = numbers
        self._flags = flags
        self._slots: dict[tuple[bool, str, str], Slot] = {}
        self._last: dict[str, float] = {}  # model -> fingerprint of the batch before
        self._device_last: dict[str, torch.Tensor] = {}  # the same, where batches are on a device
        self._step: dict[str, int] = {}  # model -> the step whose first batch was seen
        self._evaluated: dict[str, list[int]] = {}  # model -> sizes of batches in evaluations
        self.leaves: set[str] = set()  # models that are one layer, and have a tap of their own

    def call_begins(
        self, model: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """An outermost call begins."""
        schedule, clock = self._journal.schedule, self._journal.clock
        training = clock.calls.training
        if training and not (schedule.outputs or schedule.looks):
            return
        first = training and self._step.get(model) != clock.step
        if not (schedule.outputs or first or not training):
            return
        if len(args) == 1 and not kwargs and type(args[0]) is torch.Tensor:
            given = [(_ONLY, args[0])]
        else:
            given = _held(tensors((args, kwargs))[:MOST_INPUTS])
        if schedule.outputs or not training:
            for position, (path, tensor) in enumerate(given):
                quantity = names.INPUTS if position == 0 else f"{names.INPUTS}:{position}"
                slot = self._slot(model, quantity, training, path, tensor)
                if slot is not None:
                    odd = slot.fold(tensor)
                    if odd and training:
                        self._flags.flag(model, names.INPUTS, None, None, tensor)
        if not training and given and given[0][1].dim():
            self._note_size(model, given[0][1].size(0))
        if first and given:
            self._step[model] = clock.step
            self._batch(model, given[0][1])

    def _note_size(self, model: str, size: int) -> None:
        """Of evaluations, the first few sizes that batches have."""
        known = self._evaluated.setdefault(model, [])
        if len(known) < MOST_SIZES and size not in known:
            known.append(size)
            sizes = {name: list(kept) for name, kept in self._evaluated.items()}
            self._journal.writer.info(evaluation_sizes=sizes)

    def _batch(self, model: str, tensor: torch.Tensor) -> None:
        journal = self._journal
        address = names.batch_address(model)
        if tensor.dim():
            self._fold_number(address, names.BATCH_SIZE, float(tensor.size(0)))
        if not readable.is_readable(
            tensor
        ):  # the slot of the inputs has counted it as not measured
            return
        mark = fingerprint(tensor)
        if mark is not None:
            suffix = f":{model}" if model else ""
            journal.writer.log(
                names.FINGERPRINT + suffix, mark, journal.step, keep=names.KEPT_FINGERPRINTS
            )
            if model in self._last:
                self._fold_number(address, names.REPEATED, float(mark == self._last[model]))
            self._last[model] = mark
        elif is_away(tensor):
            self._device_mark(model, address, tensor)
        if journal.schedule.samples:
            self._spread(address, names.INPUT_SPREAD, tensor)
            slot = self._of(address, names.INPUT_DISTINCT)
            if slot is not None and tensor.numel():
                slot.fold(distinct(tensor))

    def _device_mark(self, model: str, address: str, tensor: torch.Tensor) -> None:
        """The fingerprint of a batch on a device, and whether it is that of the step before."""
        journal = self._journal
        mark = device_fingerprint(tensor)
        if mark is None:
            return
        name = names.FINGERPRINT + (f":{model}" if model else "")
        self._numbers.pending.add(name, mark, keep=names.KEPT_FINGERPRINTS)
        last = self._device_last.get(model)
        row = journal.row(address, names.REPEATED)
        if last is not None and last.device == mark.device and row is not None:
            same = (mark == last).reshape(1).to(number_type(mark.device))
            journal.train.fold_numbers([row], same)
        self._device_last[model] = mark

    def call_ends(self, model: str, module: nn.Module, args: Any, output: Any) -> None:
        """An outermost call has returned."""
        schedule, clock = self._journal.schedule, self._journal.clock
        training = clock.calls.training
        measures = schedule.outputs or not training
        samples = schedule.samples and training and clock.forwards == 1
        if not (measures or samples):
            return
        returned = _held(tensors(output))
        if measures and model not in self.leaves:
            for path, tensor in returned[:MOST_INPUTS]:
                slot = self._slot(model, names.OUTPUTS, training, path, tensor)
                if slot is not None:
                    odd = slot.fold(tensor)
                    if odd and training:
                        self._flags.flag(model, names.OUTPUTS, module, args, tensor)
        if samples and returned:
            self._spread(names.batch_address(model), names.OUTPUT_SPREAD, returned[0][1])

    def _spread(self, address: str, quantity: str, tensor: torch.Tensor) -> None:
        slot = self._of(address, quantity)
        is_readable = readable.is_readable(tensor)
        if slot is not None and is_readable and tensor.dim() and len(tensor) > 1 and tensor.numel():
            slot.fold(spread(tensor))

    def _fold_number(self, address: str, quantity: str, value: float) -> None:
        slot = self._of(address, quantity)
        if slot is not None:
            self._numbers.number(slot.place, value)

    def _of(self, address: str, quantity: str) -> Slot | None:
        slot = self._slots.get((True, address, quantity))
        if slot is None:
            row = self._journal.row(address, quantity)
            if row is not None:
                slot = self._slots[True, address, quantity] = self._journal.train.slot(row)
        return slot

    def _slot(
        self, model: str, quantity: str, training: bool, path: Path, tensor: torch.Tensor
    ) -> Slot | None:
        slot = self._slots.get((training, model, quantity))
        if slot is None:
            info = {"path": show_path(path), **described(tensor)}
            row = self._journal.catalogue.row(model, quantity, info)
            if row is None:
                return None
            rows = self._journal.train if training else self._journal.off
            slot = self._slots[training, model, quantity] = rows.slot(row)
        return slot


def _held(pairs: list[tuple[Path, torch.Tensor]]) -> list[tuple[Path, torch.Tensor]]:
    """What of each tensor lies in this process; those that only a sum over ranks tells are not."""
    held = [(path, local_part(tensor)) for path, tensor in pairs]
    return [(path, tensor) for path, tensor in held if tensor is not None]


@unrecorded
def spread(tensor: torch.Tensor) -> torch.Tensor:
    """How much samples differ: root of the mean variance between them, by the root mean square."""
    some = sampled(tensor.detach()[:SAMPLES], ELEMENTS, dim=1)
    some = both_parts(some)
    some = some.float() if some.device.type == "mps" else some.double()
    size = some.square().mean().sqrt()
    between = (some - some.mean(0)).square().mean().sqrt()
    return torch.where(size > 0, between / size, torch.zeros_like(size))


@unrecorded
def distinct(tensor: torch.Tensor) -> torch.Tensor:
    """Different values among up to 4,096 elements."""
    some = both_parts(sampled(tensor.detach(), DISTINCT).unsqueeze(1)).double()
    for column in reversed(range(some.shape[1])):
        some = some[some[:, column].sort(stable=True).indices]
    return (some[1:] != some[:-1]).any(1).sum() + 1
