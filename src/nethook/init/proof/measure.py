"""`verify`: do signal and gradient keep their scale over depth, and do inputs stay different?"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.addresses.tree import Tree
from nethook.errors import InputsError
from nethook.hooks.ops.consumer import Op
from nethook.init.dataflow.recorder import Recorder, mean_square, run_with, unreadable
from nethook.init.dataflow.roles import uses_at
from nethook.init.plans.methods import find_method
from nethook.init.plans.planner import plan_of
from nethook.init.plans.rows import PlanRow
from nethook.init.proof.report import LayerScale, Report
from nethook.kinds.operations import WEIGHTED
from nethook.restoring.copies import own_inputs
from nethook.stats.repeats import stored_elements, unexpanded

_MOST_SAMPLES = 64  # pairs of inputs are compared among so many
_SEED = 20130  # of the gradient that stands for a loss


def verify(
    model: nn.Module, inputs: Any, loss: Callable[[Any], torch.Tensor] | None = None
) -> Report:
    """Measures the scale of the signal and of the gradient at every layer with weights.

        report = nethook.init.verify(model, inputs)
        print(report)
        assert report.ok(0.5, 2.0)              # in a test
        report.figure().show()                  # with plotly

    Arguments:
        model: any `nn.Module`; everything is left as it was, gradients of parameters included
            (docs/sites.md says what that means).
        inputs: a batch; its first dimension counts the samples.
        loss: makes a number of the model's output. Without one the output's `.loss` is used where
            there is one, and otherwise a gradient of unit scale is sent back from the output.

    Returns:
        A `Report`: for each layer the root mean square of its output and of the gradient there, the
        ratio to the layer before, the mean cosine between the signals of two inputs, a verdict.

    One forward and one backward.
    """
    given = _differentiable(as_inputs(inputs))
    samples = _samples(given)
    measurer = _Measurer(Tree(model), given, samples)
    with torch.inference_mode(False), torch.enable_grad():
        grads = run_with(
            model, given, measurer, "nethook.init.verify",
            then=lambda output: _gradients(measurer, output, loss),
        )  # fmt: skip
    plan = plan_of(model, measurer.flow(), find_method("auto"), zero=False)
    expected = {row.parameter: row for row in plan.rows}
    rows: list[LayerScale] = []
    for layer, backward in zip(measurer.layers, grads, strict=True):
        row = expected.get(layer.parameter)
        target = _expected(layer, row)
        previous = rows[-1].forward if rows else math.nan
        ratio = layer.forward / previous if previous else math.nan
        rows.append(
            LayerScale(
                layer.address, layer.parameter, layer.forward, backward, ratio, layer.cosine,
                target, "" if row is None else row.cancelled_by, layer.role,
                row is not None and row.residual is not None,
            )
        )  # fmt: skip
    warned = (*plan.warnings, *([measurer.trouble] if measurer.trouble else []))
    return Report(type(model).__name__, tuple(rows), measurer.input_cosine, warned)


def _expected(layer: _Layer, row: PlanRow | None) -> float:
    """The scale that a layer's output should have; NaN where none is right or wrong."""
    if layer.role.startswith("recurrent"):
        return math.nan  # gates keep it between -1 and 1
    if layer.role == "embedding" and row is not None and row.std is not None:
        return row.std
    return 1.0 if row is None or row.target is None else row.target


class _Layer:
    """One call of a layer with weights, as it was measured."""

    __slots__ = ("address", "cosine", "edge", "forward", "parameter", "role")

    def __init__(
        self, address: str, parameter: str, role: str, output: torch.Tensor, samples: int
    ) -> None:
        self.address = address
        self.parameter = parameter
        self.role = role
        self.forward = math.sqrt(mean_square(output))
        self.cosine = mean_cosine(output, samples)
        # The edge, not the tensor: an operation in place may make another value of that.
        self.edge = get_gradient_edge(output) if output.requires_grad else None


class _Measurer(Recorder):
    def __init__(self, tree: Tree, given: Inputs, samples: int) -> None:
        super().__init__(tree, given)
        self.layers: list[_Layer] = []
        self.trouble = ""
        self._samples = samples
        floats = [t for _, t in tensors((given.args, dict(given.kwargs))) if t.is_floating_point()]
        self.input_cosine = mean_cosine(floats[0], samples) if floats else math.nan

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> Any:  # fmt: skip
        """Measures what a layer gives."""
        if unreadable():
            return
        nodes = self.note(op, function, args, kwargs, result)
        if op.name in WEIGHTED and nodes and nodes[0].params:
            uses = [
                use
                for use in uses_at(self, nodes[0])
                if use.fans is not None and self.parameters[use.param].tensor.numel()
            ]
            outputs = [tensor for _, tensor in tensors(result) if tensor.is_floating_point()]
            if uses and outputs:
                # Of attention, the weight that its output comes out of.
                use = next((u for u in uses if u.role == "attention output"), uses[0])
                name = self.parameters[use.param].address
                self.layers.append(_Layer(op.address, name, use.role, outputs[0], self._samples))


def mean_cosine(signal: torch.Tensor, samples: int) -> float:
    """The mean cosine between the signals of two different inputs; NaN where it means nothing."""
    usable = samples > 1 and signal.dim() > 0 and not signal.is_meta and not signal.is_nested
    usable = usable and signal.layout is torch.strided
    if not usable or signal.numel() == 0:
        return math.nan
    with torch.no_grad():
        signal = signal.detach()
        if signal.shape[0] % samples:
            if samples not in signal.shape:
                return math.nan
            # Sequence first: samples lie along another dimension.
            signal = signal.movedim(list(signal.shape).index(samples), 0)
        rows = unexpanded(signal, keep=0).reshape(samples, -1)[:_MOST_SAMPLES].double()
        rows = nn.functional.normalize(rows, dim=1)
        count = rows.shape[0]
        # The square of the sum is the count, plus twice the cosines of all pairs.
        together = float(rows.sum(0).square().sum())
        alone = float(rows.square().sum())
        return (together - alone) / (count * (count - 1))


def _differentiable(given: Inputs) -> Inputs:
    made: dict[int, torch.Tensor] = {}

    def with_gradient(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        if stored_elements(tensor) < tensor.numel():
            return tensor.detach()  # the gradient of an expanded one has no place in memory
        if id(tensor) not in made:
            # No leaf: that could not be written in place, as a forward may.
            made[id(tensor)] = tensor.detach().requires_grad_().clone()
        return made[id(tensor)]

    # Copies outside inference mode, so that the inputs themselves get no gradient.
    with torch.inference_mode(False), torch.enable_grad():
        own = own_inputs(given)
        args, kwargs = map_tensors(with_gradient, (own.args, dict(own.kwargs)))
    return Inputs(args, kwargs)


def _samples(given: Inputs) -> int:
    batched = [tensor for _, tensor in tensors((given.args, dict(given.kwargs))) if tensor.dim()]
    return int(batched[0].size(0)) if batched else 0


def _gradients(
    measurer: _Measurer, output: Any, loss: Callable[[Any], torch.Tensor] | None
) -> list[float]:
    edges = [layer.edge for layer in measurer.layers if layer.edge is not None]
    if not edges:
        return [math.nan] * len(measurer.layers)
    value = loss(output) if loss is not None else getattr(output, "loss", None)
    if isinstance(value, torch.Tensor):
        if value.numel() != 1:
            raise InputsError(
                f"`loss` must give one number; got shape {tuple(value.shape)}. Take a mean: "
                "loss.mean()."
            )
        if not value.requires_grad:
            raise InputsError(
                "`loss` must depend on the model's output; got a number without a gradient. Look "
                "for .detach() and .item()."
            )
        ends, sent = [value], None
    else:
        if loss is not None:
            raise InputsError(f"`loss` must give a tensor; got {type(value).__name__}.")
        ends = [t for _, t in tensors(output) if t.requires_grad and t.is_floating_point()]
        if not ends:
            return [math.nan] * len(measurer.layers)
        generator = torch.Generator().manual_seed(_SEED)
        sent = [_noise(end, generator) for end in ends]
    try:
        arrived = torch.autograd.grad(ends, edges, sent, allow_unused=True)
    except RuntimeError as error:  # a reentrant checkpoint, for one, allows no such backward
        measurer.trouble = f"no gradients: {str(error).splitlines()[0]}"
        return [math.nan] * len(measurer.layers)
    remaining = iter(arrived)
    grads = [None if layer.edge is None else next(remaining) for layer in measurer.layers]
    return [
        math.nan if gradient is None else math.sqrt(mean_square(gradient)) for gradient in grads
    ]


def _noise(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    # Drawn on the CPU, so that every device sends the same.
    return torch.randn(like.shape, generator=generator).to(like)
