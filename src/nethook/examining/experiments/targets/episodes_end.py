"""Episodes end: what is hoped for after the last step of an episode is left out of its target.

Experiment: the operations that made the target are read, none is run. A target that is one number
per row plus a factor times what a network says of something else, as of Q-learning, has a second
number per row, or a mask, where some rows have no next state.

Meaning: `target = reward + gamma * q(next).max(1)` in which `done` does not occur.

Cost: none.

Does not apply: where the target is not of that kind, or was made before the model was called. A
question always: a task may have no end.
"""

from __future__ import annotations

from typing import Final

from nethook.examining.experiment import Result, fine, not_applicable, question
from nethook.examining.passage import Passage
from nethook.examining.probes.origins import target_slot
from nethook.examining.probes.source import line_of_loss
from nethook.examining.recording import PassageOp
from nethook.examining.rehearsal import Rehearsal

_KINDS: Final = ("mse", "smooth_l1", "huber", "l1", "by hand")
# Row by row: what goes in for a row comes out for it.
_BY_ROW: Final = frozenset(
    {"add", "radd", "sub", "rsub", "mul", "rmul", "div", "true_divide", "neg", "unsqueeze",
     "squeeze", "view", "reshape", "detach", "clone", "to", "float", "double", "type", "where",
     "masked_fill", "logical_not", "bitwise_not", "invert", "clamp", "minimum", "maximum", "min",
     "flatten", "contiguous", "view_as", "expand", "ne", "eq", "__get__", "data"}
)  # fmt: skip
# The value of a state, of what a network says of all that can be done in it.
_VALUE: Final = frozenset(
    {"max", "amax", "gather", "getitem", "__getitem__", "mean", "sum", "logsumexp", "select",
     "take_along_dim", "linear", "addmm"}
)  # fmt: skip
_NETWORK: Final = frozenset({"linear", "addmm", "matmul", "conv2d", "conv1d", "bmm", "mm"})


class EpisodesEnd:
    """See the module."""

    name = "episodes end"
    turn = 2

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        call = rehearsal.recorded.main
        if rehearsal.passage is None or call is None or call.op < 0 or call.target is None:
            return "no target is known that was made after the model was called"
        if call.kind not in _KINDS or not call.target.is_floating_point():
            return "the target is no number that was computed"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """What the target is made of."""
        call, passage = rehearsal.recorded.main, rehearsal.passage
        slot = None if call is None or passage is None else target_slot(passage, call)
        if call is None or passage is None or slot is None or call.target is None:
            return not_applicable(self, "no target is known")
        made = _Made(passage, call.op, call.target.numel())
        made.follow(slot)
        if not made.values or not made.scaled or not made.leaves:
            return not_applicable(self, "the target is not made of a number and a later value")
        facts = {"rows": call.target.numel(), "numbers": len(made.leaves)}
        if made.written or len(made.leaves) > 1:
            return fine(self, **facts)
        lines = [line for line in (line_of_loss(rehearsal),) if line]
        return question(self, "the task may have no end", lines=lines, **facts)


class _Made:
    """What a target is made of, row by row."""

    def __init__(self, passage: Passage, before: int, rows: int) -> None:
        self._by_result: dict[int, PassageOp] = {
            slot: op for op in passage.ops[:before] for slot in op.results
        }
        self._shapes = {constant.slot: constant.shape for constant in passage.constants}
        self._rows = rows
        self.leaves: set[int] = set()
        """Tensors with one number per row that the script had, or made in some other way."""
        self.values = 0
        """What a network says."""
        self.scaled = False
        """Whether something is multiplied by a plain number."""
        self.written = any(op.writes for op in passage.ops[:before] if op.name == "setitem")
        self._seen: set[int] = set()

    def follow(self, slot: int) -> None:
        """Goes back from a tensor."""
        if slot in self._seen:
            return
        self._seen.add(slot)
        op = self._by_result.get(slot)
        if op is None:
            shape = self._shapes.get(slot)
            size = 1
            for length in shape or ():
                size *= length
            if shape is not None and size == self._rows and self._rows > 1:
                self.leaves.add(slot)
            return
        if op.name in _VALUE and self._is_of_a_network(op):
            self.values += 1
            return
        if op.name in _BY_ROW:
            self.scaled |= op.name in ("mul", "rmul") and len(op.reads) == 1
            self.written |= bool(op.writes)
            for read in op.reads:
                self.follow(read)
        else:
            self.leaves.add(slot)  # whatever it is, it may tell rows apart

    def _is_of_a_network(self, op: PassageOp) -> bool:
        waiting, seen = [op], set()
        while waiting:
            one = waiting.pop()
            if one.name in _NETWORK:
                return True
            for read in one.reads:
                before = self._by_result.get(read)
                if before is not None and read not in seen:
                    seen.add(read)
                    waiting.append(before)
        return False
