"""The calls of one step that change shapes or choose among scores, with the lines they stand on.

One pass of the model, and what comes after it up to the loss, are run once for all experiments that
ask. Of each call the shapes are kept, and no tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch

from nethook.addresses.nested import tensors
from nethook.examining.probes.once import once
from nethook.examining.rehearsal import Rehearsal
from nethook.hooks.ops.names import op_name
from nethook.hooks.process.source_line import line_of_script

Shape = tuple[int, ...]

VIEWS: Final = frozenset({"view", "reshape", "view_as", "reshape_as", "_unsafe_view"})
SOFTMAXES: Final = frozenset({"softmax", "log_softmax", "gumbel_softmax"})
_LINEAR: Final = frozenset({"linear", "addmm", "conv1d", "conv2d", "bilinear"})
# What hands on where scores come from: element by element, or another shape.
_HANDS_ON: Final = frozenset(
    {"view", "reshape", "squeeze", "unsqueeze", "transpose", "permute", "contiguous", "flatten",
     "tanh", "relu", "leaky_relu", "elu", "gelu", "sigmoid", "masked_fill", "mul", "div",
     "true_divide", "add", "sub", "where", "to", "float", "dropout", "t"}
)  # fmt: skip
_MOST: Final = 2048


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its name, shapes and line.

    Attributes:
        name: of the operation.
        given, made: shapes of what it was given first, and returned.
        dim: of a softmax; None of any other call, and where it is not known.
        linear: whether what it was given comes from a layer that is linear, and an axis of one
            element from that layer too: sequences may have one step.
        inside: whether the model made it, and not the script after it.
        line: of the script, `train.py:42`.
    """

    name: str
    given: Shape
    made: Shape
    dim: int | None
    linear: bool
    inside: bool
    line: str


def calls_of(rehearsal: Rehearsal) -> tuple[Call, ...]:
    """Every view and softmax of the step, in order."""
    return once(rehearsal, "calls", lambda: _look(rehearsal))


def _look(rehearsal: Rehearsal) -> tuple[Call, ...]:
    noted = _Noted()
    rehearsal.run(outputs_only=not rehearsal.replayable, seen=noted.inside, replayed=noted.after)
    return tuple(noted.calls)


class _Noted:
    """What has been seen so far."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        # Tensors that come from a linear layer; held, so that an id is nobody else's.
        self._linear: dict[int, torch.Tensor] = {}

    def inside(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        run: Callable[[], Any],
    ) -> Any:
        """A call of the model."""
        result = run()
        if len(self.calls) < _MOST and (name := op_name(function)) is not None:
            wanted = name in VIEWS or name in SOFTMAXES
            line = str(line_of_script(or_library=True)) if wanted else ""
            self._note(name, args, kwargs, result, line, inside=True)
        return result

    def after(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, line: str
    ) -> None:
        """A call of the script, after the model has returned."""
        if len(self.calls) < _MOST:
            self._note(name, args, kwargs, result, line, inside=False)

    def _note(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
        line: str,
        *,
        inside: bool,
    ) -> None:
        given = args[0] if args else kwargs.get("input")
        made = next((tensor for _, tensor in tensors(result)), None)
        if not isinstance(given, torch.Tensor) or made is None:
            return
        linear = id(given) in self._linear
        if (name in _LINEAR and _makes_ones(name, made)) or (linear and name in _HANDS_ON):
            self._linear[id(made)] = made
        if name in VIEWS or name in SOFTMAXES:
            self.calls.append(
                Call(
                    name, tuple(given.shape), tuple(made.shape),
                    _dim(args, kwargs) if name in SOFTMAXES else None, linear, inside, line,
                )
            )  # fmt: skip


def _makes_ones(name: str, made: torch.Tensor) -> bool:
    """Whether axes of one element that follow are the layer's doing.

    They are where it has one output, and where the data has no such axis.
    """
    outputs = 1 if name.startswith("conv") else made.dim() - 1
    if made.dim() < 2 or made.size(outputs) == 1:
        return True
    return all(size > 1 for dim, size in enumerate(made.shape) if dim not in (0, outputs))


def _dim(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    return dim if isinstance(dim, int) and not isinstance(dim, bool) else None
