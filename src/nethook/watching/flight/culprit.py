"""Which of several signs of NaN is the first, and what kind of case it is.

`forward`     a site, or an operation between two sites, made it from finite numbers
`loss`        the outputs of the model are finite, and the loss is not
`backward`    the loss is finite, and a gradient is not
`optimizer`   gradients are finite, and the step left parameters that are not
`parameters`  a site's own parameters were not finite before the step
`data`        the batch, or its targets, had it already
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from nethook.runs.names import GRADS, MADE_BY_OPTIMIZER, OUTPUTS, PARAM_GRADS, PARAMS
from nethook.watching.flight.flag import Flag
from nethook.watching.flight.loss import LossCause
from nethook.watching.flight.ranges import Range, is_finite, range_of, ranges_of
from nethook.watching.flight.reasons import forward_reason
from nethook.watching.flight.ring import Call

_SHOWN = 8


@dataclass
class Suspect:
    """A flag, looked at while its tensors were there."""

    address: str
    quantity: str
    step: int
    call: Call | None = None
    value: Range | None = None
    inputs: list[Range] = field(default_factory=list)
    inputs_finite: bool | None = None  # None where they could not be looked at
    parameters: list[str] = field(default_factory=list)  # of the module, those that are not finite
    kind: str = ""  # the type of the module
    reason: str = ""

    @property
    def key(self) -> tuple[str, str, bool, bool]:
        """What it takes for two flags to be the same sign."""
        value_range = self.value
        return (
            self.address,
            self.quantity,
            value_range is None or bool(value_range.nan),
            value_range is None or bool(value_range.posinf),
        )


def look_at(flag: Flag, call: Call | None, harmless: set[tuple[str, str, bool, bool]]) -> Suspect:
    """A flag as a suspect. Of signs that are known to be harmless the inputs are not looked at."""
    suspect = Suspect(flag.address, flag.quantity, flag.step, call)
    if isinstance(flag.value, torch.Tensor):
        suspect.value = range_of(flag.value)
    elif flag.value is not None:
        ranges = [value_range for value_range in ranges_of(flag.value) if not value_range.finite]
        suspect.value = ranges[0] if ranges else None
    if flag.quantity != OUTPUTS or suspect.key in harmless or flag.inputs is None:
        return suspect
    suspect.inputs = ranges_of(flag.inputs)
    suspect.inputs_finite = all(value_range.finite for value_range in suspect.inputs)
    if flag.module is not None:
        suspect.kind = type(flag.module).__name__
        suspect.parameters = _not_finite(flag.module)
        if suspect.inputs_finite and not suspect.parameters:
            suspect.reason = _reason(flag)
    return suspect


def _not_finite(module: nn.Module) -> list[str]:
    return [name for name, parameter in module.named_parameters() if not is_finite(parameter)]


def _reason(flag: Flag) -> str:
    inputs = flag.inputs if isinstance(flag.inputs, tuple | list) else (flag.inputs,)
    return forward_reason(type(flag.module).__name__, inputs, _first_tensor(flag.value))


def _first_tensor(value: Any) -> Any:
    while isinstance(value, tuple | list) and value:
        value = value[0]
    return value


@dataclass
class Pinned:
    """The first NaN of a run, and what is known of what made it."""

    case: str
    address: str
    step: int
    message: str
    reason: str = ""
    operation: str = ""
    before: str = ""  # the site that first saw it, where an operation between sites made it
    ranges: list[Range] = field(default_factory=list)
    call: Call | None = None
    signs: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the event and the file."""
        return {
            "case": self.case,
            "site": self.address,
            "step": self.step,
            "reason": self.reason,
            "operation": self.operation,
            "before": self.before,
            "ranges": [value_range.to_dict() for value_range in self.ranges[:_SHOWN]],
            "signs": self.signs[:_SHOWN],
            "message": self.message,
        }


def pin(
    suspects: Sequence[Suspect],
    loss: LossCause | None,
    inputs: object,
    *,
    healthy: bool = False,
    measured: bool = True,
) -> Pinned:
    """The first cause among the signs of a step.

    Arguments:
        suspects: the signs, in the order in which they came; harmless ones are left out.
        loss: what is known of the loss, if it is not finite.
        inputs: the batch of the step.
        healthy: whether steps with finite gradients came before this one.
        measured: whether the outputs of sites were looked at in this step.
    """
    forward = [suspect for suspect in suspects if suspect.quantity == OUTPUTS]
    if loss is not None and loss.prediction_finite:
        forward = []  # they did not reach the output: a mask, or filled in
    if forward:
        pinned = _forward(forward[0], inputs, healthy=healthy)
    elif loss is not None and loss.prediction_finite is False:
        pinned = _somewhere(suspects[0], inputs, measured=measured)
    elif loss is not None:
        pinned = _loss(loss, suspects, sure=measured or bool(loss.prediction_finite))
    else:
        pinned = _behind(suspects)
    pinned.signs = [_sign(suspect) for suspect in suspects]
    if pinned.call is None and suspects:
        pinned.call = suspects[0].call
    return pinned


def _sign(suspect: Suspect) -> dict[str, Any]:
    value = None if suspect.value is None else suspect.value.to_dict()
    return {"address": suspect.address, "quantity": suspect.quantity, "value": value}


def _forward(first: Suspect, inputs: object, *, healthy: bool) -> Pinned:
    address, what = first.address, _what(first)
    if first.parameters:
        addresses = [f"{address}.{name}".lstrip(".") for name in first.parameters[:4]]
        names = ", ".join(addresses)
        if healthy:
            return Pinned(
                "optimizer", addresses[0], first.step - 1,
                f"after the step {names} {'is' if len(addresses) == 1 else 'are'} not finite, and "
                "the gradients were", reason=MADE_BY_OPTIMIZER,
                call=first.call,
            )  # fmt: skip
        return Pinned(
            "parameters", address, first.step,
            f"the output of {_site(address)} is {what} because its own parameters are: {names}",
            reason=f"not finite before the step: {names}", ranges=first.inputs, call=first.call,
        )  # fmt: skip
    if first.inputs_finite is False:
        poisoned = _poisoned(inputs)
        if poisoned:
            return Pinned(
                "data", address, first.step,
                f"the batch has {_counts(poisoned[0])}, which {_site(address)} is the first to "
                "meet",
                reason="not finite in the data", ranges=poisoned, call=first.call,
            )  # fmt: skip
        around = address.rpartition(".")[0]
        return Pinned(
            "forward", around, first.step,
            f"an operation in {_site(around)} made {_counts_of(first.inputs)} "
            f"between the sites before {_site(address)} and its input",
            before=address, ranges=first.inputs, call=first.call,
        )  # fmt: skip
    said = f": {first.reason}" if first.reason else ""
    # Inside a compiled graph only outputs are seen.
    although = "" if first.inputs_finite is None else " although its inputs are finite"
    return Pinned(
        "forward", address, first.step,
        f"the output of {_site(address)} is {what}{although}{said}",
        reason=first.reason, operation=first.kind, ranges=first.inputs, call=first.call,
    )  # fmt: skip


def _somewhere(first: Suspect, inputs: object, *, measured: bool) -> Pinned:
    """The output is not finite, and no site has a sign."""
    poisoned = _poisoned(inputs)
    if poisoned:
        return Pinned(
            "data", "", first.step, f"the batch has {_counts(poisoned[0])}",
            reason="not finite in the data", ranges=poisoned, call=first.call,
        )  # fmt: skip
    said = "those of its sites are: an operation behind the last of them made it"
    if not measured:
        said = "its sites were not looked at in this step: a replay names what made it"
    return Pinned(
        "forward", "", first.step, f"the model's output is not finite, and {said}", call=first.call
    )


def _loss(loss: LossCause, suspects: Sequence[Suspect], *, sure: bool) -> Pinned:
    step = suspects[0].step if suspects else -1
    if loss.target_finite is False:
        return Pinned(
            "data", "", step, "the targets are not finite, and neither is the loss",
            reason="not finite in the targets", operation=loss.operation, ranges=loss.ranges,
        )  # fmt: skip
    if not loss.chain:
        return Pinned("loss", "", step, "the loss is not finite: a replay names what made it")
    made = " ← ".join(loss.chain)
    said = f": {loss.reason} in {loss.operation}" if loss.operation else ""
    output = ", while the model's output is finite" if sure else ""
    return Pinned(
        "loss", "", step, f"the loss ({made}) is not finite{output}{said}",
        reason=loss.reason, operation=loss.operation, ranges=loss.ranges,
    )  # fmt: skip


def _behind(suspects: Sequence[Suspect]) -> Pinned:
    for quantity in (GRADS, PARAM_GRADS):
        for first in suspects:
            if first.quantity == quantity:
                where = (
                    f"the gradient that came back to the output of {_site(first.address)}"
                    if quantity == GRADS
                    else f"the gradient of {first.address!r}"
                )
                return Pinned(
                    "backward", first.address, first.step,
                    f"{where} is {_what(first)}, and the loss is finite", call=first.call,
                    ranges=[] if first.value is None else [first.value],
                )  # fmt: skip
    first = next((suspect for suspect in suspects if suspect.quantity == PARAMS), suspects[0])
    return Pinned(
        "optimizer", first.address, first.step,
        f"the step left {first.address!r} {_what(first)}, and its gradient was finite",
        reason=MADE_BY_OPTIMIZER, call=first.call,
        ranges=[] if first.value is None else [first.value],
    )  # fmt: skip


def _poisoned(inputs: object) -> list[Range]:
    """The tensors of a batch that have NaN or +Inf; −Inf is how masks are written."""
    ranges = ranges_of(inputs, "inputs")
    return [value_range for value_range in ranges if value_range.nan or value_range.posinf]


def _site(address: str) -> str:
    return repr(address) if address else "the model"


def _what(suspect: Suspect) -> str:
    return "not finite" if suspect.value is None else _counts(suspect.value)


def _counts(value_range: Range) -> str:
    parts = [("NaN", value_range.nan), ("+Inf", value_range.posinf), ("−Inf", value_range.neginf)]
    return " and ".join(name for name, count in parts if count) or "not finite"


def _counts_of(ranges: Sequence[Range]) -> str:
    return next((_counts(value_range) for value_range in ranges if not value_range.finite), "NaN")
