"""Which element of the target, as the script first had it, stands at each place of the loss.

Between the two lie `view`, `transpose` and slices. They are done again on the numbers of the
elements, so that the place of every number says where the script has put that element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch

from nethook.addresses.nested import map_tensors, tensors
from nethook.examining.loss_calls import BY_HAND, LossCall, arguments_of, is_loss
from nethook.examining.passage import Passage
from nethook.examining.recording import Slot
from nethook.examining.rehearsal import Rehearsal

_LAYOUT: Final = frozenset(
    {"view", "reshape", "flatten", "unflatten", "ravel", "transpose", "permute", "movedim",
     "moveaxis", "swapaxes", "swapdims", "t", "T", "mT", "squeeze", "unsqueeze", "getitem",
     "__getitem__", "narrow", "select", "contiguous", "clone", "detach", "index_select", "chunk",
     "split", "unbind", "view_as", "reshape_as", "expand", "flip", "roll", "__get__"}
)  # fmt: skip
# Other types, places and units for the same elements: their numbers stay as they are.
_SAME: Final = frozenset(
    {"to", "type", "type_as", "float", "double", "half", "bfloat16", "long", "int", "short",
     "cuda", "cpu", "requires_grad_", "sub", "rsub", "add", "mul", "div", "true_divide", "neg",
     "eq", "ne", "lt", "le", "gt", "ge", "clamp", "round", "log", "log1p", "exp", "sqrt", "abs"}
)  # fmt: skip
# What chooses samples: the target begins with its result.
_CHOOSES: Final = frozenset({"getitem", "__getitem__", "index_select", "take_along_dim", "gather"})


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where the elements of a target have come to stand.

    Attributes:
        shape: of the target as it was first seen.
        numbers: in the shape of the target of the loss; each is an element of the first one,
            counted in its order.
    """

    shape: tuple[int, ...]
    numbers: torch.Tensor

    def along(self, dim: int) -> torch.Tensor:
        """Of each place of the loss, the index of its target along a dimension of the first one."""
        below = 1
        for size in self.shape[dim + 1 :]:
            below *= size
        return (self.numbers // below) % self.shape[dim]


def places_of(rehearsal: Rehearsal) -> Places | None:
    """Of the main loss; None where the target was computed, and not only laid out."""
    call = rehearsal.recorded.main
    if call is None or call.target is None:
        return None
    passage = rehearsal.passage
    if passage is None or call.inside_model or call.op < 0:
        return None
    slot = target_slot(passage, call)
    if slot is None:
        return None
    known = {
        constant.slot: torch.arange(max(1, _count(constant.shape))).reshape(constant.shape)
        for constant in passage.constants
        if not constant.parameter
    }
    shapes = {constant.slot: tuple(constant.shape) for constant in passage.constants}
    values = {
        constant.slot: constant.value
        for constant in passage.constants
        if constant.value is not None
    }
    first = dict(zip(known, known, strict=True))
    for op in passage.ops[: call.op]:
        reads = [read for read in op.reads if read in known]
        if len(op.reads) > 1 and op.name in _CHOOSES and all(read in values for read in op.reads):
            for result, tensor in zip(op.results, _made(op, values), strict=False):
                known[result] = torch.arange(max(1, tensor.numel())).reshape(tensor.shape)
                shapes[result], first[result] = tuple(tensor.shape), result
            continue
        if len(op.reads) != 1 or not reads or op.writes:
            continue
        if op.name in _SAME:
            made = [known[reads[0]]]
        elif op.name in _LAYOUT:
            made = _made(op, known)
        else:
            continue
        for result, tensor in zip(op.results, made, strict=False):
            known[result], first[result] = tensor, first[reads[0]]
    if slot not in known or known[slot].shape != call.target.shape:
        return None
    return Places(tuple(shapes[first[slot]]), known[slot])


def rows_that(moved: torch.Tensor, call: LossCall) -> torch.Tensor | None:
    """Elements of a prediction -> places of the target; None where they do not go together."""
    target = call.target
    if target is None:
        return None
    if call.kind in ("cross_entropy", "nll") and moved.dim() == target.dim() + 1:
        rows = moved.any(1 if moved.dim() > 1 else 0)
        return rows if rows.shape == target.shape else None
    if moved.shape == target.shape:
        return moved
    if call.kind == BY_HAND and call.options.get("operation") in ("gather", "getitem"):
        rows = moved.any(-1)
        if rows.numel() == target.numel() and moved.shape[: rows.dim()] == rows.shape:
            return rows.reshape(target.shape)
    return None


def prediction_row(prediction: torch.Tensor, call: LossCall, place: int) -> torch.Tensor | None:
    """What is compared with one element of the target."""
    target = call.target
    if target is None:
        return None
    if prediction.shape == target.shape:
        return prediction.reshape(-1)[place]
    if call.kind in ("cross_entropy", "nll") and prediction.dim() == target.dim() + 1:
        last = prediction.movedim(1, -1) if prediction.dim() > 1 else prediction.unsqueeze(0)
        return last.reshape(-1, last.size(-1))[place]
    if call.kind == BY_HAND and prediction.numel() % max(1, target.numel()) == 0:
        return prediction.reshape(target.numel(), -1)[place]
    return None


def target_slot(passage: Passage, call: LossCall) -> int | None:
    """The number of the tensor in a passage that is the target of a loss."""
    op = passage.ops[call.op]
    if is_loss(op.function):
        target = arguments_of(op.function, op.args, op.kwargs).target
        return target.number if isinstance(target, Slot) else None
    constants = {constant.slot: constant.shape for constant in passage.constants}
    shape = None if call.target is None else tuple(call.target.shape)
    slots = [read for read in op.reads if constants.get(read) == shape]
    made = [read for read in op.reads if read not in constants]
    return slots[-1] if slots else (made[-1] if made else None)


def _made(op: Any, known: dict[int, torch.Tensor]) -> list[torch.Tensor]:
    """What an operation makes of other tensors than it had."""

    def filled(value: Any) -> Any:
        return known[value.number] if type(value) is Slot else value

    args, kwargs = map_tensors(lambda tensor: tensor, (op.args, op.kwargs), filled)
    try:
        made = op.function(*args, **kwargs)
    except Exception:  # an index that needs the values themselves, say
        return []
    return [tensor for _, tensor in tensors(made)]


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
