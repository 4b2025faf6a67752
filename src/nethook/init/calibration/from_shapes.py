"""What calibration must know of a model before data pass through it: its structure.

It is learnt from a fake copy of the model, without memory, that is run with shapes alone. The
scale of a residual stream is not known then; it is read where the stream begins, when the data come
by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.hooks.layouts.fake import fake_copy
from nethook.init.dataflow.recorder import Flow, Node, record
from nethook.init.plans.methods import find_method
from nethook.init.plans.planner import plan_with_streams
from nethook.init.plans.rows import Plan


@dataclass(frozen=True, slots=True)
class Stream:
    """Where the stream of a residual sum begins, found again in another forward of the model."""

    op: str
    address: str
    out: int
    number: int  # among the values of the same operation: a module may be called several times
    share: float  # of the mean square there, what the branch should have

    def square(self, nodes: Sequence[Node]) -> float | None:
        """The mean square that the branch should have; None where the stream has not been seen."""
        matches = [node for node in nodes if _key(node) == (self.op, self.address, self.out)]
        if self.number >= len(matches):
            return None
        square = matches[self.number].mean_square * self.share
        return square if 0 < square < math.inf else None


@dataclass(frozen=True, slots=True)
class Learnt:
    """A plan for its structure, and the streams of the weights that end a branch."""

    plan: Plan
    streams: dict[str, Stream]


def learn_structure(model: nn.Module, given: Inputs) -> Learnt | None:
    """The structure of a model, from shapes alone; None where its forward needs values."""
    try:
        with fake_copy(model, (given.args, dict(given.kwargs))) as (twin, (args, kwargs)):
            flow = record(twin, Inputs(args, kwargs))
        return structure_of(twin, flow)  # outside, for it computes with activations
    except Exception:
        # Whatever a forward without values may run into, the forward with data tells better.
        return None


def structure_of(model: nn.Module, flow: Flow) -> Learnt:
    """The structure that a recorded forward shows."""
    plan, starts = plan_with_streams(model, flow, find_method("auto"))
    streams = {name: _stream(flow, start, share) for name, (start, share) in starts.items()}
    return Learnt(plan, streams)


def _stream(flow: Flow, start: int, share: float) -> Stream:
    op, address, out = key = _key(flow.nodes[start])
    number = sum(_key(node) == key for node in flow.nodes[:start])
    return Stream(op, address, out, number, share)


def _key(node: Node) -> tuple[str, str, int]:
    return node.op, node.address, node.out
