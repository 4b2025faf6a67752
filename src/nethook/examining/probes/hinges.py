"""A hinge that the script has written itself: `(1 - target * output).clamp(min=0)`.

Its target is the data that the output is multiplied with, and nothing else of the loss: data that
is read a second time is a mask or a weight.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import torch

from nethook.examining.passage import Passage
from nethook.examining.recording import PassageOp, Slot

_SAME: Final = frozenset(
    {"view", "reshape", "unsqueeze", "squeeze", "flatten", "to", "float", "double", "type",
     "type_as", "getitem", "__getitem__", "clone", "contiguous", "detach", "view_as", "reshape_as"}
)  # fmt: skip
# Answers are compared with targets beside the loss.
_METRICS: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


class Hinge(NamedTuple):
    """One of them."""

    target: torch.Tensor
    line: str


def hinges_of(passage: Passage) -> list[Hinge]:
    """The hinges between output and loss, in order."""
    values = {
        constant.slot: constant.value
        for constant in passage.constants
        if constant.value is not None and constant.shape and not constant.grad
    }
    data = {slot: slot for slot in values}  # what shows a constant -> that constant
    output = set(passage.outputs)
    products: dict[int, int] = {}  # target * output -> target
    margins: dict[int, int] = {}  # 1 - target * output -> target
    found: list[tuple[int, str]] = []
    uses: dict[int, int] = {}
    for op in passage.ops:
        given = [data[slot] for slot in op.reads if slot in data]
        if given and op.name in _SAME:
            data.update(dict.fromkeys(op.results, given[0]))
            continue
        if op.name not in _METRICS:
            for slot in given:
                uses[slot] = uses.get(slot, 0) + 1
        of_output = any(slot in output for slot in op.reads)
        if op.name in ("mul", "rmul") and len(given) == 1 and of_output:
            products.update(dict.fromkeys(op.results, given[0]))
        elif op.name == "rsub" and op.reads[0] in products and _is_margin(op):
            margins.update(dict.fromkeys(op.results, products[op.reads[0]]))
        elif op.reads and op.reads[0] in margins and _is_cut_at_zero(op):
            found.append((margins[op.reads[0]], op.line))
        if of_output:
            output.update(op.results, op.writes)
    return [Hinge(values[slot], line) for slot, line in found if uses[slot] == 1]


def _is_margin(op: PassageOp) -> bool:
    """Whether something is taken from a positive number."""
    other = op.args[1] if len(op.args) > 1 else op.kwargs.get("other")
    return isinstance(other, int | float) and other > 0 and isinstance(op.args[0], Slot)


def _is_cut_at_zero(op: PassageOp) -> bool:
    if op.name == "relu":
        return True
    low = op.args[1] if len(op.args) > 1 else op.kwargs.get("min")
    high = op.args[2] if len(op.args) > 2 else op.kwargs.get("max")
    at_zero = isinstance(low, int | float) and low == 0
    return op.name in ("clamp", "clamp_min", "clip") and at_zero and high is None
