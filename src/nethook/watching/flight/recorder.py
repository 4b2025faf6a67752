"""The flight recorder: the first NaN of a run, what made it, and what is needed to see it again.

A NaN inside the network is a sign, not a fault: masks are infinite, padding may be NaN, and a loss
scaler tries scales until gradients overflow. It is a fault when the loss, or a gradient that an
optimizer uses, or a parameter is not finite. Then the first sign of that step is the cause, and the
batch is saved before the optimizer changes the weights it was run with.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from torch import nn

from nethook.addresses.wrappers import unwrap
from nethook.hooks.modes import quiet
from nethook.runs.names import GRADS, NON_FINITE, OUTPUTS, PARAM_GRADS, PARAMS
from nethook.stats.shards import is_shared
from nethook.stats.transfers import Transfers
from nethook.watching.fail_open import FailsAlone, contained
from nethook.watching.flight.at_once import operation_at_once
from nethook.watching.flight.culprit import Pinned, Suspect, look_at, pin
from nethook.watching.flight.file import Flight as Saved
from nethook.watching.flight.file import flight_path, save, weights_of
from nethook.watching.flight.flag import Flag
from nethook.watching.flight.held import HeldCalls
from nethook.watching.flight.loss import LossCause, LossKeeper, cause_of
from nethook.watching.flight.ranges import is_finite, range_of
from nethook.watching.flight.ring import Call
from nethook.watching.journal import Journal
from nethook.watching.recorder import Recorder

MOST_SIGNS: Final = 64
"""Signs of one step that are looked at."""

PATIENCE: Final = 3
"""Steps in a row that a loss scaler may skip with a forward that is not finite."""

LOSS: Final = "loss"


class Flight(FailsAlone, Recorder):
    """Tells of the first NaN: which step, which operation, with which batch.

    A tap whose tensor has NaN or infinities calls `flag` at once on CPU; elsewhere a device tells
    two steps later, without tensors.

    Arguments:
        journal: where events go.
        batches: how many steps' inputs to hold on to; 0 holds none and saves nothing.
    """

    part = "the flight recorder"
    rests = ("call_ends",)

    def __init__(self, journal: Journal, batches: int = 3) -> None:
        self._watching: Journal = journal
        self.off = False
        self.held = HeldCalls(journal, batches)
        """The calls of the last steps; told of every outermost call in training."""
        self._keeper = LossKeeper()
        self._transfers = Transfers()
        self.signs: list[Suspect] = []
        self._harmless: set[tuple[str, str, bool, bool]] = set()
        self._loss: LossCause | None = None  # of this step, where it is not finite
        self.stepped = False
        self._skipped = 0
        self._healthy = False  # whether a step was taken with gradients that were finite
        self.reported = False
        self._bad_loss: tuple[int, Call | None] | None = None  # a device told of it: step and call
        self._from_device: dict[int, list[Suspect]] = {}  # step -> signs, of the last few steps

    @property
    def call(self) -> Call | None:
        """The outermost call that is or was under way."""
        return self.held.last

    # -- what the watch tells ---------------------------------------------------------------------

    def call_ends(self, model: str, module: nn.Module, args: Any, output: Any) -> None:
        """An outermost call has returned."""
        if self._watching.schedule.looks and self._watching.clock.calls.training:
            self.forward_ends()

    @contained
    def forward_ends(self) -> None:
        """An outermost call in training has returned: has it drawn random numbers?"""
        self.held.ended()

    @contained
    def mode_changed(self) -> None:
        """The model is in another mode: it may draw random numbers now."""
        self.held.mode_changed()

    def flag(
        self, address: str, quantity: str, module: nn.Module | None, inputs: Any, value: Any
    ) -> None:
        """NaN or infinities were seen in the call or the pass that is under way."""
        phase = self._watching.phase if quantity == OUTPUTS else "train"
        self.non_finite(Flag(address, quantity, self._watching.step, phase, module, inputs, value))

    @contained
    def non_finite(self, flag: Flag) -> None:
        """NaN or infinities were seen at a site."""
        if self.reported or len(self.signs) >= MOST_SIGNS:
            return
        with quiet():
            self.signs.append(look_at(flag, self.call, self._harmless))

    def backward_begins(self, roots: Sequence[torch.Tensor], fine: bool = False) -> None:
        """A backward pass is about to begin, and its graph is whole.

        `fine` says that every loss is known to be finite.
        """
        if self.reported:
            return
        plain = self.held.plain
        if fine and plain.held is not None and len(roots) == 1:
            plain.kept = self._keeper.keep_plainly(roots)
            return
        call = self.call
        if call is not None:
            call.loss = self._keeper.keep(roots)
        if fine:
            return
        for root in roots:
            away = not (root.is_cpu or root.is_meta or is_shared(root))
            if away and root.numel() == 1:
                told = functools.partial(self._late_loss, self._watching.step, call)
                self._transfers.put(root.detach().reshape(1).float(), told)
            if root.grad_fn is None or not _is_bad_loss(root):
                continue
            with quiet():
                cause = cause_of(root.grad_fn)
                if math.isnan(root.item()) or not cause.only_scaled:
                    self._loss = cause
                    sign = Suspect("", LOSS, self._watching.step, call, range_of(root))
                    self.signs.append(sign)

    def step_begins(self, optimizer: torch.optim.Optimizer, skipped: bool | None) -> None:
        """An optimizer is about to use its gradients, unless a loss scaler leaves the step out."""
        if self.reported or skipped:
            return
        self.stepped = True
        if self.signs:
            self._look_before_step(optimizer)

    @contained
    def _look_before_step(self, optimizer: torch.optim.Optimizer) -> None:
        if self._loss_is_bad() or not _gradients_finite(optimizer):
            self._report(weights=True)  # now, for the step will change them

    def end_step(self, step: int) -> None:
        """A step has ended."""
        self.step_ended(step, self._watching.clock.skipped)

    def step_ended(self, step: int, skipped: bool | None) -> None:
        """A step has ended; `skipped` is None where only the device knows."""
        if self.reported or not self.was_easy():
            self._look_back(step, skipped)

    def was_easy(self) -> bool:
        """Whether nothing was told in the step that has ended, as nearly always."""
        if self.signs or self._transfers.under_way or self._bad_loss is not None:
            return False
        self._healthy = self._healthy or self.stepped
        self.stepped, self._loss, self._skipped = False, None, 0
        return True

    @contained
    def _look_back(self, step: int, skipped: bool | None) -> None:
        self._transfers.poll()
        if self.reported:
            return
        if self._bad_loss is not None:
            bad = self._bad_loss[0]
            # What else a device has to tell of a step comes right after its loss, if at all.
            if bad in self._from_device or step >= bad + 2:
                self._report_late(*self._bad_loss)
                return
        if self.signs:
            if skipped or (skipped is None and self.stepped is False):
                self._step_was_skipped()
            elif self._is_fault():
                self._report(weights=not self.stepped)
            else:
                self._harmless.update(sign.key for sign in self.signs)
                self._skipped = 0
        else:
            self._skipped = 0
        self._healthy |= self.stepped
        self._forget()

    @contained
    def end_window(self) -> None:
        """A window ends, and devices are waited for anyway."""
        self._transfers.fetch()

    @contained
    def device_flags(
        self,
        step: int,
        call: Call | None,
        keys: Sequence[tuple[str, str]],
        skipped: bool | None,
    ) -> None:
        """A device tells what was not finite in a step that is over, if anything was."""
        if self.reported or skipped:
            return
        # Forwards in their order, then gradients from the last site to the first.
        forward = [key for key in keys if key[1] == OUTPUTS]
        backward = [key for key in reversed(keys) if key[1] == GRADS]
        used = [key for key in keys if key[1] in (PARAM_GRADS, PARAMS)]
        signs = [Suspect(*key, step, call) for key in (*forward, *backward, *used)][:MOST_SIGNS]
        self._from_device[step] = signs
        # Of a fused optimizer under a loss scaler only the device knows whether it has stepped.
        if used and skipped is not None:
            self._report_late(step, call)
        elif len(self._from_device) > PATIENCE:
            # The loss of that step has come by now, and it was finite.
            first = next(iter(self._from_device))
            self._harmless.update(sign.key for sign in self._from_device.pop(first))

    @contained
    def close(self) -> None:
        """Watching ends."""
        self._transfers.flush()
        if self._bad_loss is not None and not self.reported:
            self._report_late(*self._bad_loss)
        self._let_go()

    def turn_off(self) -> None:
        """After an error, maybe in what lets go: nothing is looked for any more, nothing held."""
        self.off = True
        self.held = HeldCalls(self._watching, 0)
        self._loss = None
        self.signs = []
        self._transfers = Transfers()

    def _let_go(self) -> None:
        self._forget()
        self._transfers = Transfers()
        self.held.let_go()

    def _late_loss(self, step: int, call: Call | None, values: list[float]) -> None:
        """The loss of an earlier step has arrived from its device: its graph is gone by now."""
        # Where a scaler is used an infinite loss may be no more than a scale that is too large.
        scaled = call is not None and abs(call.loss.get("factor", 1.0)) > 1.0
        if self.reported or math.isfinite(values[0]) or (scaled and math.isinf(values[0])):
            return
        self._bad_loss = self._bad_loss or (step, call)

    def _report_late(self, step: int, call: Call | None) -> None:
        """Of a step whose graph is gone by now, and whose weights have changed since."""
        signs = self._from_device.get(step, [])
        if self._bad_loss is not None and self._bad_loss[0] == step:
            signs = [*signs, Suspect("", LOSS, step, call)]
            self._loss = self._loss or LossCause()
        self.signs = [*signs, *self.signs]
        self._report(weights=False)

    # -- what is made of it -----------------------------------------------------------------------

    def _loss_is_bad(self) -> bool:
        return any(sign.quantity == LOSS for sign in self.signs)

    def _is_fault(self) -> bool:
        """Whether a sign reached what training is made of; on CPU `before_step` has looked."""
        reached = {LOSS, PARAM_GRADS, PARAMS}
        return any(sign.quantity in reached for sign in self.signs)

    def _step_was_skipped(self) -> None:
        """A scaler tries another scale; but no scale helps where the forward is not finite."""
        # The loss of a scaled run is infinite too where only its scale is too large.
        forward = [sign for sign in self._fresh() if sign.quantity == OUTPUTS]
        self._skipped = self._skipped + 1 if forward and self._loss_is_bad() else 0
        if self._skipped >= PATIENCE:
            self._report(weights=True)

    def _fresh(self) -> list[Suspect]:
        """The signs that no healthy step had."""
        return [sign for sign in self.signs if sign.key not in self._harmless]

    def _report(self, *, weights: bool) -> None:
        self.reported = True
        signs = self._fresh() or self.signs
        call = signs[0].call or self.call
        with quiet():
            inputs = None if call is None else call.inputs
            # To keep its budget the watch may not have looked at outputs in this step.
            measured = self._watching.schedule.outputs
            pinned = pin(signs, self._loss, inputs, healthy=self._healthy, measured=measured)
            pinned.step = pinned.step if pinned.step >= 0 else self._watching.step
            pinned.call = pinned.call or call
            data = pinned.to_dict() | self._save(pinned, weights=weights)
        watched = None if pinned.call is None else pinned.call.module()
        if data.get("file") and not data.get("left_out") and watched is not None:
            run, guard = self._watching.run_path(), self._watching.guard
            data["replayed"] = operation_at_once(run, watched, guard)
        said = _sentence(pinned, data, self._watching.run_path())
        self._watching.event(NON_FINITE, said, pinned.address, data)
        # Nobody reads the file while training goes to waste. `nethook run` says it at the end.
        if sys.stderr is not None and not self._watching.guard.silent:
            sys.stderr.write(f"nethook: {said}\n")
        self._let_go()

    def _save(self, pinned: Pinned, *, weights: bool) -> dict[str, Any]:
        """Saves the batch; returns where, or why not."""
        call = pinned.call
        watched = None if call is None else call.module()
        if call is None or watched is None:
            return {"file": None, "not_saved": "no batches were held (batches=0)"}
        if call.args is None:
            return {"file": None, "not_saved": "the batch was too large to be held"}
        if call.overwritten:
            return {"file": None, "not_saved": "the batch was written in place since"}
        module = unwrap(watched)  # names are those of the bare model
        held = weights_of(module) if weights else None
        path = flight_path(self._watching.run_path())
        try:
            left_out = save(
                path,
                Saved(
                    pinned.to_dict() | {"model": call.model},
                    call.args,
                    call.kwargs or {},
                    call.random,
                    call.autocast,
                    held or {},
                    {name: submodule.training for name, submodule in module.named_modules()},
                    call.whole_loss,
                ),
            )
        except (OSError, SafetensorError) as error:
            return {"file": None, "not_saved": str(error)}
        return {
            "file": Path(path).name,
            "weights": held is not None,
            "not_saved": "",
            "left_out": [name for name in left_out if name.startswith(("args", "kwargs"))],
        }

    def _forget(self) -> None:
        self.signs = []
        self._loss = None
        self.stepped = False


def _is_bad_loss(root: torch.Tensor) -> bool:
    """Whether a loss is not finite; one on a device is looked at by the watch, later."""
    local = root.is_cpu and not is_shared(root)
    readable = local and root.dim() == 0 and root.is_floating_point()
    return readable and not math.isfinite(root.item())


def _gradients_finite(optimizer: torch.optim.Optimizer) -> bool:
    with quiet():
        return all(
            is_finite(parameter.grad)
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None and parameter.grad.device.type == "cpu"
        )


def _sentence(pinned: Pinned, data: dict[str, Any], run: str) -> str:
    said = f"step {pinned.step}: {pinned.message}."
    if data.get("left_out"):
        said += (
            f" nethook.replay({run!r}, model, inputs=nethook.inputs(...)) runs a batch again; not "
            f"saved of this one: {', '.join(data['left_out'])}."
        )
    elif data.get("file"):
        said += f" nethook.replay({run!r}, model) runs the batch again."
    elif data.get("not_saved"):
        said += f" The batch was not saved: {data['not_saved']}."
    return said
