"""`calibrate_`: every layer's scale set on data, in one forward.

The output of a layer, less its bias, is linear in its weight. So as soon as the output is there the
weight is divided by the output's scale, the layer is computed again, and what follows sees a layer
that is right already. Rescaling layer after layer with a forward each, as LSUV does, comes to the
same weights with as many forwards as there are layers.

A weight that was scaled is rounded, and in types of few digits its output is then not quite what
was wanted. It is scaled again as long as that brings it closer, and else left: so a second run,
which starts where the first one ended, changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.addresses.tree import Tree
from nethook.errors import InitError, OptionError
from nethook.hooks.ops.consumer import Op
from nethook.init.calibration.from_shapes import Stream, learn_structure, structure_of
from nethook.init.calibration.result import Calibrated, Calibration
from nethook.init.dataflow.fans import Layout
from nethook.init.dataflow.recorder import Node, Recorder, mean_square, run_with, unreadable
from nethook.init.dataflow.roles import Use, uses_at
from nethook.init.plans.rows import Plan, PlanRow
from nethook.init.plans.sampling import why_not_fillable
from nethook.kinds.operations import ATTENTION, LOOKUPS, RECURRENT, WEIGHTED
from nethook.restoring.copies import own_inputs
from nethook.stats.repeats import unexpanded

_CLOSE = 1e-6  # a weight that is as close as that is left alone
_BEFORE = "it serves in an earlier place as well, which scaling it here would change"


def calibrate_(
    model: nn.Module, inputs: Any, target: float = 1.0, *, plan: Plan | None = None
) -> Calibration:
    """Scales each weight so that its output has a root mean square of `target` on a batch.

        nethook.init.apply_(model, plan)
        print(nethook.init.calibrate_(model, inputs, plan=plan))

    Arguments:
        model: any `nn.Module`; its weights are changed in place.
        inputs: a batch of what the model will be trained on.
        target: the root mean square of every layer's output; that of the last layer of a residual
            branch is divided by √(number of sums), as in the plan.
        plan: from `nethook.init.plan`; it says which weights end a residual branch, which make
            queries and keys, and which a norm makes of no account. Without one, this is learnt
            from a copy of the model without memory, run with shapes alone.

    Linear layers, convolutions, products with a parameter, and attention (the values' rows and the
    output projection) are calibrated. Recurrent weights, queries and keys, and embeddings are left
    to the plan, and listed with the reason. But for the weights everything is left as it was
    (docs/sites.md says what that means).

    One forward. Only without a plan, and where the model's forward looks at values (so that shapes
    alone do not say what it does), a second one may follow; `forwards` says so.

    Returns:
        A `Calibration`: a row per weight, and what was not calibrated and why.
    """
    if not 0 < target < math.inf:
        raise OptionError(f"`target` must be a number above 0, a root mean square; got {target!r}.")
    _refuse_what_cannot_be_scaled(model)
    given = as_inputs(inputs)
    if plan is not None:
        return _run(model, given, target, plan)[0]
    learnt = learn_structure(model, given)
    if learnt is not None:
        return _run(model, given, target, learnt.plan, learnt.streams)[0]
    return _learning_from_data(model, given, target)


def _learning_from_data(model: nn.Module, given: Inputs, target: float) -> Calibration:
    """Calibrates all alike, and once more where the structure that shows then wants otherwise."""
    sites = Tree(model).parameters().sites
    kept = {id(site.tensor): (site.tensor, site.tensor.detach().clone()) for site in sites}
    first, recorder = _run(model, given, target, None)
    learnt = structure_of(model, recorder.flow())
    if _needs_a_plan(learnt.plan, first):
        for parameter, old in kept.values():
            _put_back(parameter, old)
        return _run(model, given, target, learnt.plan, learnt.streams)[0].after(first)
    # What a norm cancels need not have been scaled: it gets back what it was.
    cancelled = {row.parameter: row for row in learnt.plan.rows if row.cancelled_by}
    for site in recorder.parameters:
        if site.address in cancelled:
            _put_back(site.tensor, kept[id(site.tensor)][1])
    return first.without(cancelled)


@torch.no_grad()
def _put_back(parameter: torch.Tensor, old: torch.Tensor) -> None:
    parameter.copy_(old)


def _refuse_what_cannot_be_scaled(model: nn.Module) -> None:
    for site in Tree(model).parameters().sites:
        if isinstance(site.tensor, nn.Parameter):
            reason = why_not_fillable(site.tensor)
            other = site.tensor.is_complex() or not site.tensor.requires_grad
            if reason is not None and not other:
                raise InitError(f"{site.address!r} cannot be calibrated: {reason}.")


def _needs_a_plan(learnt: Plan, first: Calibration) -> bool:
    """Whether something was scaled that should not have been, or to another scale."""
    scaled = {row.parameter for row in first.rows}
    for row in learnt.rows:
        if row.parameter in scaled and not row.cancelled_by:
            other = row.target is not None and not math.isclose(row.target, 1.0, rel_tol=1e-9)
            if row.not_calibrated or other or row.value_block is not None:
                return True
    return False


def _run(
    model: nn.Module, given: Inputs, target: float, plan: Plan | None,
    streams: Mapping[str, Stream] = MappingProxyType({}),
) -> tuple[Calibration, _Calibrator]:  # fmt: skip
    given = own_inputs(given)
    calibrator = _Calibrator(Tree(model), given, target, plan, streams)
    run_with(model, given, calibrator, "nethook.init.calibrate_", parameters=False)
    return calibrator.result(type(model).__name__), calibrator


class _Calibrator(Recorder):
    """Scales weights as their outputs pass, and records the graph."""

    def __init__(
        self, tree: Tree, given: Inputs, target: float, plan: Plan | None,
        streams: Mapping[str, Stream],
    ) -> None:  # fmt: skip
        super().__init__(tree, given)
        self._streams = streams
        self._target = target
        self._plan = None if plan is None else {row.parameter: row for row in plan.rows}
        self._rows: dict[int, Calibrated] = {}
        self._left: dict[int, str] = {}
        self._seen: set[int] = set()  # parameters that an operation has used
        self._again: dict[int, int] = {}  # further uses of what was calibrated

    def result(self, model: str) -> Calibration:
        """What was done."""
        names = [site.address for site in self.parameters]
        left = {
            names[param]: reason for param, reason in self._left.items() if param not in self._rows
        }
        used = {use.index for node in self.nodes for use in node.params}
        for param, site in enumerate(self.parameters):
            if param not in used:
                left[site.address] = "no operation used it"
        shared = {names[param]: count for param, count in self._again.items()}
        rows = tuple(self._rows.values())
        return Calibration(model, self._target, rows, tuple(left.items()), tuple(shared.items()), 1)

    def before(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Attention is one operation: its values are scaled before it runs."""
        if op.name == ATTENTION and not unreadable():
            with torch.no_grad():
                _Values(self, args, kwargs).scale(op.address)

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> Any:  # fmt: skip
        """Scales the weight of a layer, and gives what the layer gives then."""
        if unreadable():
            return None
        if op.name not in WEIGHTED:
            for node in self.note(op, function, args, kwargs, result):
                self._seen.update(use.index for use in node.params)
            return None
        # Looked up before the result is known to the graph, which holds one node per tensor.
        trial = self.trial(op, function, args, kwargs)
        first = result
        again = partial(function, *args, **kwargs)
        for use in uses_at(self, trial):
            result = self._one(use, trial, op, result, again)
        self._seen.update(use.index for use in trial.params)
        self.note(op, function, args, kwargs, result)
        return None if result is first else result

    def _one(
        self, use: Use, node: Node, op: Op, result: Any, again: Callable[[], Any]
    ) -> Any:  # fmt: skip
        """Scales one weight of a layer, and gives what the layer gives then."""
        if use.why_not:
            self._left.setdefault(use.param, use.why_not)
        if use.fans is None or use.why_not or not isinstance(_first(result), torch.Tensor):
            return result
        if op.name == ATTENTION and use.role != "attention output":
            return result
        row = self.row(use.param)
        reason = self._why_left(use, op.name, row)
        if reason:
            self._left.setdefault(use.param, reason)
            return result
        if use.param in self._rows:
            self._again[use.param] = self._again.get(use.param, 1) + 1
            return result
        if use.param in self._seen:
            self._left[use.param] = _BEFORE
            return result
        bias = self._bias(use, node)
        weight = self.parameters[use.param].tensor
        # Attention drops out inside: a second call would draw another mask.
        compute = None if op.name == ATTENTION else again
        if row is not None and row.value_block is not None and row.layout is not None:
            layer = _block(row.layout, row.value_block, weight, bias, compute)
        else:
            channels = _channels(use.layout, _first(result))
            layer = _Layer(weight, bias, channels, _first, compute)
        return self.write(use.param, layer, result, self.goal(row), op.address)

    def write(self, param: int, layer: _Layer, result: Any, goal: float, address: str) -> Any:
        """Scales a weight, unless it is right already, and writes down that it did."""
        before = math.sqrt(mean_square(layer.part(result)))
        factor, note, then = layer.scale(result, goal)
        after = before if factor == 1 else math.sqrt(mean_square(layer.part(then)))
        name = self.parameters[param].address
        self._rows[param] = Calibrated(
            name, address, before, after, goal, factor, note or layer.note
        )
        return then

    def row(self, param: int) -> PlanRow | None:
        """What the plan says about a parameter."""
        return None if self._plan is None else self._plan.get(self.parameters[param].address)

    def goal(self, row: PlanRow | None) -> float:
        """The scale that a weight's output should have."""
        stream = None if row is None else self._streams.get(row.parameter)
        square = None if stream is None else stream.square(self.nodes)
        if square is not None:
            return math.sqrt(square)
        return self._target * (1.0 if row is None or row.target is None else row.target)

    def leave(self, param: int, reason: str) -> None:
        """Notes why a parameter is not calibrated."""
        self._left.setdefault(param, reason)

    def _why_left(self, use: Use, op: str, row: PlanRow | None) -> str:
        tensor = self.parameters[use.param].tensor
        if not tensor.requires_grad:
            return "it is frozen (requires_grad=False)"
        if not tensor.is_floating_point():
            return f"it is of type {str(tensor.dtype).removeprefix('torch.')}"
        if row is not None and (row.not_calibrated or not row.touched):
            return row.not_calibrated or row.reason
        if op in LOOKUPS:
            return "an embedding: its plan is exact"
        if op in RECURRENT:
            return "recurrent: its output depends on it through time, so the plan's scale stands"
        return ""

    def _bias(self, use: Use, node: Node) -> torch.Tensor | None:
        wanted = "out_proj.bias" if use.role == "attention output" else None
        for other in uses_at(self, node):
            if other.role == "bias":
                name = self.parameters[other.param].address
                if wanted is None or name.endswith(wanted):
                    return self.parameters[other.param].tensor
        return None


@dataclass(frozen=True, slots=True)
class _Layer:
    """A weight, its bias, and the part of a result that both make."""

    weight: torch.Tensor
    bias: torch.Tensor | None
    channels: int  # the dimension of the output along which the bias lies
    part: Callable[[Any], torch.Tensor]
    again: Callable[[], Any] | None  # computes the result; None: it would be another one
    note: str = ""

    def scale(self, result: Any, goal: float) -> tuple[float, str, Any]:
        """Scales the weight: by what, a note on it, and what the layer gives."""
        applied = 1.0
        factor, note = _factor(self.part(result), self.bias, goal, self.channels)
        # Types of few digits, also those of autocast, show no smaller difference than this.
        types = (self.weight.dtype, self.part(result).dtype)
        close = max(_CLOSE, *(torch.finfo(dtype).eps / 4 for dtype in types))
        # One turn is mostly enough for float32. In narrow types the scaled weight is rounded, so
        # its output may miss the goal: it is scaled again as long as that brings it closer, and
        # the last try, which does not, is undone.
        while abs(factor - 1) > close:
            old = self.weight.detach().clone()
            self._set(partial(self.weight.mul_, factor))
            if self.again is None:
                return factor, note, self._multiplied(result, factor)
            then = self.again()
            following, said = _factor(self.part(then), self.bias, goal, self.channels)
            if not abs(following - 1) < abs(factor - 1):
                self._set(partial(self.weight.copy_, old))
                # The same values: but autograd refuses the graph of a weight that was written to
                # since, and `out=` has put what was tried into the same tensor.
                result = self.again()
                break
            applied, factor, result = applied * factor, following, then
            note = note or said
        return applied, note, result

    @torch.no_grad()
    def _set(self, change: Callable[[], Any]) -> None:
        change()
        torch.clear_autocast_cache()  # it may hold the weight as it was

    def _multiplied(self, result: Any, factor: float) -> Any:
        """What the layer gives with a weight that is multiplied, as far as rounding lets it."""
        output, bias = _first(result), self.bias
        scaled = output * factor if bias is None else (output - bias) * factor + bias
        return (scaled, *result[1:]) if isinstance(result, tuple) else scaled


def _block(
    layout: Layout, number: int, weight: torch.Tensor, bias: torch.Tensor | None,
    again: Callable[[], Any] | None,
) -> _Layer:  # fmt: skip
    """The values of a packed projection: one block of its outputs."""
    rows = weight.chunk(layout.blocks, dim=1 if layout.in_first else 0)[number]
    offset = None if bias is None else bias.chunk(layout.blocks)[number]

    def part(result: Any) -> torch.Tensor:
        return torch.chunk(_first(result), layout.blocks, dim=-1)[number]

    return _Layer(rows, offset, -1, part, again, "the values' rows")


class _Values:
    """The values of torch's own attention, which it computes where nothing can be seen."""

    def __init__(
        self, calibrator: _Calibrator, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._calibrator = calibrator
        packed = _argument(args, kwargs, 5, "in_proj_weight")
        bias = _argument(args, kwargs, 6, "in_proj_bias")
        self._values = _argument(args, kwargs, 2, "value")
        separate = kwargs.get("v_proj_weight")
        self._parameter = packed if packed is not None else separate
        self._rows = packed.chunk(3)[2] if packed is not None else separate
        self._bias = None if bias is None else bias.chunk(3)[2]

    def scale(self, address: str) -> None:
        """Scales the rows of the values."""
        if self._rows is None or self._parameter is None:
            return
        calibrator = self._calibrator
        params = [
            param
            for param, site in enumerate(calibrator.parameters)
            if site.tensor is self._parameter
        ]
        if not params or params[0] in calibrator._rows:
            return
        (param,) = params
        row = calibrator.row(param)
        if not self._parameter.requires_grad:
            calibrator.leave(param, "it is frozen (requires_grad=False)")
            return
        again = partial(nn.functional.linear, self._values, self._rows, self._bias)
        layer = _Layer(self._rows, self._bias, -1, _first, again, "the values' rows")
        calibrator.write(param, layer, again(), calibrator.goal(row), f"{address} values")


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str) -> Any:
    return args[position] if len(args) > position else kwargs.get(name)


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def _channels(layout: Layout | None, output: torch.Tensor) -> int:
    """The dimension of an output along which a bias lies."""
    spatial = layout is not None and layout.form in ("conv", "conv_transpose")
    return -1 if not spatial or output.dim() < 3 else 1


def _factor(
    output: torch.Tensor, bias: torch.Tensor | None, goal: float, channels: int
) -> tuple[float, str]:
    """By what a weight must be multiplied for its output to have the scale that is wanted."""
    if output.is_nested or not output.is_floating_point():
        return 1.0, "its output has no scale that could be measured"
    if bias is None or not bool(bias.any()):
        square = mean_square(output)
        if not math.isfinite(square):
            return 1.0, "its output is not finite"
        if square == 0:
            return 1.0, "its output is zero: there is nothing to scale"
        return goal / math.sqrt(square), ""
    shape = [1] * output.dim()
    shape[channels] = -1
    offset = bias.detach().double().reshape(shape)
    linear = unexpanded(output.detach(), keep=channels).double() - offset
    # The mean square of factor · linear + offset is a quadratic in the factor.
    a = float(linear.square().mean())
    b = float((linear * offset).mean())
    c = float(offset.square().mean()) - goal**2
    if not math.isfinite(a):
        return 1.0, "its output is not finite"
    if a == 0:
        return 1.0, "its output is its bias alone: there is nothing to scale"
    inner = b * b - a * c
    if inner < 0 or (root := (-b + math.sqrt(inner)) / a) <= 0:
        return goal / math.sqrt(a), "its bias alone is larger than the target: left out"
    return root, ""
