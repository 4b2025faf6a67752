"""What is explained: a model, the value whose parts are to be told apart, and a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors, replace, tensors
from nethook.addresses.paths import Path
from nethook.addresses.patterns import Pattern
from nethook.errors import OptionError
from nethook.hooks.autograd.lazy_copy import cheap_copy
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.attributions.targets import Given, Target
from nethook.interp.devices import device_of, moved_inputs
from nethook.interp.estimates.gradients import weights_frozen
from nethook.interp.estimates.points import Point, attach
from nethook.interp.estimates.sites import module_points
from nethook.interp.results.attribution import Attribution
from nethook.interp.results.places import PIXELS, SIGNAL, kind_of
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged

_ROWS_OF_A_GRAPH = 64  # more rows are differentiated in batches that fit memory


@dataclass(eq=False)
class Subject:
    """A model that can be run on other values in the place of the one that is studied.

    `value` is that value for the inputs as given, (rows, …). `point` is the site it comes from;
    None where it is the tensor at `path` among the inputs.
    """

    model: nn.Module
    inputs: Inputs
    target: Target
    value: torch.Tensor
    path: Path
    point: Point | None = None
    output: Any = None  # of the run on the inputs as given
    graph: tuple[torch.Tensor, torch.Tensor] | None = None  # of that run: the leaf, and the scores
    runs: int = 1
    notes: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> int:
        """How many rows the batch has."""
        return len(self.value)

    @property
    def address(self) -> str:
        """Where the value is; "" is the input."""
        return "" if self.point is None else self.point.name

    @property
    def kind(self) -> str:
        """What the places of the value are."""
        return kind_of(self.value.shape, is_input=self.point is None)

    @property
    def shown(self) -> torch.Tensor | None:
        """What a figure can show beside the result: pictures, or token ids."""
        if self.kind == PIXELS:
            return self.picture
        if self.kind == SIGNAL:
            return self.value
        given = (t for _, t in self._given() if not t.is_floating_point())
        return next((t for t in given if t.shape == self.value.shape[:2]), None)

    @property
    def picture(self) -> torch.Tensor | None:
        """The pictures among the inputs, where there are some."""
        return next((t for _, t in self._given() if t.is_floating_point() and t.ndim == 4), None)

    def at_picture(self) -> Subject:
        """The same with the pictures as what is studied."""
        path, value = next(
            (p, t) for p, t in self._given() if t.is_floating_point() and t.ndim == 4
        )
        return Subject(self.model, self.inputs, self.target, value, path, output=self.output)

    def _given(self) -> list[tuple[Path, torch.Tensor]]:
        return tensors((self.inputs.args, dict(self.inputs.kwargs)))

    def result(self, method: str, values: torch.Tensor, **more: Any) -> Attribution:
        """An attribution, with what is known of the subject."""
        given = {"score": self.score, "notes": (), **more}
        notes = (*self.notes, *given.pop("notes"))
        shown = self.shown
        return Attribution(
            method=method, values=values.detach().to(self.value.dtype), at=self.address,
            kind=self.kind, inputs=None if shown is None else shown.detach().clone(),
            runs=self.runs, notes=notes, **given,
        )  # fmt: skip

    @property
    def score(self) -> torch.Tensor:
        """The target for the inputs as given."""
        return self.target.of(self.output, torch.arange(self.rows), self.rows).detach()

    # -- running ------------------------------------------------------------------------------

    def call(self, values: torch.Tensor, which: torch.Tensor) -> Any:
        """The model's output with these values in place, each a variant of a row `which`."""
        self.runs += 1
        inputs = self._rows_of_inputs(which)
        # A copy: the model may write to what it is given, and a leaf must not be written to.
        values = values.clone()
        if self.point is None:
            args, kwargs = replace((inputs.args, dict(inputs.kwargs)), self.path, values)
            return Inputs(args, kwargs).call(self.model)
        with attach(self.model, [self.point], lambda _, value: values.to(value.dtype)):
            return inputs.call(self.model)

    def scores(self, values: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        """The target for values in the place of rows `which`."""
        with torch.no_grad():
            return self.target.of(self.call(values, which), which, self.rows).detach()

    def gradients(
        self, values: torch.Tensor, which: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The target, and its gradient for each value."""
        with torch.enable_grad():
            leaf = values.detach().clone().requires_grad_()
            scores = self.target.of(self.call(leaf, which), which, self.rows)
            check_gradient(scores)
            found: Sequence[torch.Tensor | None] = torch.autograd.grad(
                scores.sum(), leaf, allow_unused=True
            )
        return scores.detach(), torch.zeros_like(leaf) if found[0] is None else found[0]

    def _rows_of_inputs(self, which: torch.Tensor) -> Inputs:
        rows = self.rows
        if len(which) == rows and bool((which == torch.arange(rows)).all()):
            return own_inputs(self.inputs)

        def chosen(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.ndim == 0 or tensor.shape[0] != rows:
                return tensor.clone()
            return tensor[which.to(tensor.device)]

        args, kwargs = self.inputs.args, dict(self.inputs.kwargs)
        return Inputs(
            map_tensors(chosen, args, fresh=True), map_tensors(chosen, kwargs, fresh=True)
        )


def check_gradient(scores: torch.Tensor) -> None:
    """Refuses a target without a gradient, whose attributions would be zero without a word."""
    if not scores.requires_grad:
        raise OptionError(
            "`target` must have a gradient; got one that is computed without: by argmax or another "
            "whole number, .detach() or torch.no_grad, or not from this value at all. Give a score "
            "(target=3), or study it without gradients: interp.occlusion, interp.shapley."
        )


_NO_VALUES: Final = torch.empty(0)


@contextmanager
def subject(
    model: nn.Module, x: object, target: Given, at: Pattern | None, *, graph: bool = False
) -> Iterator[Subject]:
    """Runs the model once, in evaluation; leaves everything as it was at the end of the block.

    With `graph`, that run can be differentiated, unless the batch is large.
    """
    wanted = Target(target)
    inputs = moved_inputs(x, device_of(model))
    # Each call gets tensors of its own, so those that were given need not be kept to be put back.
    others = map_tensors(lambda _: _NO_VALUES, (inputs.args, dict(inputs.kwargs)))
    with (
        unchanged(model, others, evaluation=True),
        weights_frozen(model),
        layer_by_layer(),
        torch.inference_mode(False),
    ):
        if at is None:
            yield _of_input(model, inputs, wanted, graph=graph)
        else:
            yield _of_site(model, inputs, wanted, at, graph=graph)


def _of_input(model: nn.Module, inputs: Inputs, target: Target, *, graph: bool) -> Subject:
    given = tensors((inputs.args, dict(inputs.kwargs)))
    floats = [(path, tensor) for path, tensor in given if tensor.is_floating_point()]
    if not floats:
        raise OptionError(
            "`at` must name the embedding where the input has no tensor of floats; got None. Token "
            "ids have no gradient, and there is nothing between two of them. Write "
            'at="bert.embeddings", or what nethook.sites(model, inputs) lists first.'
        )
    path, value = floats[0]
    if value.ndim == 0:
        raise OptionError("`x` must have a dimension of rows first; got a single number.")
    more = (f"of {len(floats)} inputs with gradient, the first",) if len(floats) > 1 else ()
    study = Subject(model, inputs, target, value.detach(), path, runs=0, notes=more)
    everything = torch.arange(len(value))
    if graph and len(value) <= _ROWS_OF_A_GRAPH:
        with torch.enable_grad():
            leaf = study.value.clone().requires_grad_()
            output = study.call(leaf, everything)
            target.settle(map_tensors(torch.Tensor.detach, output), len(value))
            study.graph = leaf, target.of(output, everything, len(value))
    else:
        with torch.no_grad():
            output = study.call(study.value, everything)
        target.settle(output, len(value))
    study.output = map_tensors(torch.Tensor.detach, output)
    return study


def _of_site(
    model: nn.Module, inputs: Inputs, target: Target, at: Pattern, *, graph: bool
) -> Subject:
    points = module_points(model, at)
    if len(points) != 1:
        names = ", ".join(repr(point.name) for point in points[:4])
        raise OptionError(f"`at` must name one site; got {at!r}, which means {names}.")
    leaves: list[torch.Tensor] | None = [] if graph else None
    value, output = recorded(model, inputs, points[0], leaves)
    if not value.is_floating_point():
        raise OptionError(
            f"`at` must name a value of floats; got {points[0].name!r} of {value.dtype}."
        )
    plain = map_tensors(torch.Tensor.detach, output)
    target.settle(plain, len(value))
    study = Subject(model, inputs, target, value, (), points[0], plain)
    if leaves:
        with torch.enable_grad():
            scores = target.of(output, torch.arange(len(value)), len(value))
        study.graph = leaves[0], scores
    return study


def recorded(
    model: nn.Module, inputs: Inputs, point: Point, leaves: list[torch.Tensor] | None = None
) -> tuple[torch.Tensor, Any]:
    """The value at a site in one run, and what the model returned.

    Where `leaves` are asked for, and the batch is not large, the rest of the model can be
    differentiated, and a leaf that stands for the value is put there.
    """
    seen: list[torch.Tensor] = []

    def keep(_: Point, value: torch.Tensor) -> torch.Tensor | None:
        own = cheap_copy(value, detach=True)
        seen.append(own)
        few = value.ndim > 0 and len(value) <= _ROWS_OF_A_GRAPH
        if leaves is None or not few or not value.is_floating_point():
            return None
        leaves.append(own.requires_grad_())
        return cheap_copy(own)  # the model may write to what it goes on with

    with torch.set_grad_enabled(leaves is not None), attach(model, [point], keep):
        output = own_inputs(inputs).call(model)
    if len(seen) != 1:
        raise OptionError(
            f"`at` must name a site that runs once; got {point.name!r}, which ran {len(seen)} "
            "times. Name an operation inside it: nethook.sites(model, inputs) lists them."
        )
    return seen[0].detach(), output
