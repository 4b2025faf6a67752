"""Activations as they were computed: one function of torch, or several that make one.

`x * sigmoid(x)`, or a GELU written out in eight operations, is one function of one value. What
computes it is evaluated again on other numbers, so its gain is known like that of any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from nethook.addresses.nested import map_tensors
from nethook.errors import ActivationError
from nethook.init.dataflow.recorder import Flow, Node, ParamUse, Ref
from nethook.init.gains.activations import _CLASSES, module_name
from nethook.init.gains.integrals import Moments, moments
from nethook.kinds.operations import ALIGNED, COMPARISONS, ELEMENTWISE

_CASTS = ALIGNED  # in a replay they do nothing


class Composites:
    """Which values are a function, element by element, of one other value."""

    def __init__(self, flow: Flow) -> None:
        self._nodes = flow.nodes
        self._parameters = flow.parameters
        self.source: list[int] = []  # of each node: itself where it is no such function
        for node in flow.nodes:
            self.source.append(self._source_of(node))
        self._cache: dict[tuple[str, float], Moments | None] = {}

    def _source_of(self, node: Node) -> int:
        if node.op == "prelu" and len(node.parents) == 1:
            return self.source[node.parents[0]]
        if node.op in ALIGNED and len(node.parents) == 1 and not node.params:
            return self.source[node.parents[0]]
        comparable = node.floating or node.op in COMPARISONS
        if node.op not in ELEMENTWISE or node.params or node.derived or not comparable:
            return node.index
        data = [p for p in node.parents if not self._is_number(p)]
        sources = {self.source[parent] for parent in data}
        same_shape = all(self._nodes[p].shape == node.shape for p in data)
        if len(sources) != 1 or not same_shape:
            return node.index
        (source,) = sources
        return source if self._nodes[source].op != "constant" else node.index

    def _is_number(self, index: int) -> bool:
        node = self._nodes[index]
        return node.op == "constant" and node.numel == 1

    def is_function(self, index: int) -> bool:
        """Whether a value is a function of another one, and more than a copy of it."""
        return self.source[index] != index and not self.is_copy(index)

    def is_copy(self, index: int) -> bool:
        """Whether a value is its source, cast or dropped out."""
        node = self._nodes[index]
        while node.index != self.source[index]:
            if node.op not in ALIGNED:
                return False
            node = self._nodes[node.parents[0]]
        return True

    def name(self, index: int) -> str:
        """What to call the function of a value."""
        node = self._nodes[index]
        while node.op in ALIGNED:
            node = self._nodes[node.parents[0]]
        module = node.module
        inside = self._inside(node.index)
        if module is not None and (type(module) in _CLASSES.values()):
            return module_name(module)
        if len(inside) == 1:
            return _call_name(node)
        addresses = {node.place.address if node.place else "" for node in inside}
        if len(addresses) == 1 and node.place is not None and not node.place.is_root:
            return type(module).__name__
        names = [node.op for node in inside]
        return " ".join(names if len(names) <= 4 else [*names[:3], "…"])

    def _inside(self, index: int) -> list[Node]:
        """The operations between a value and its source, in order."""
        steps = [step for step in self._between(index) if not self._is_number(step)]
        return [self._nodes[step] for step in steps if self._nodes[step].op not in ALIGNED]

    def function(self, index: int) -> Callable[[torch.Tensor], torch.Tensor]:
        """The function itself, for any tensor."""
        source = self.source[index]
        steps = [self._nodes[step] for step in self._between(index)]
        slopes = {
            step.index: self._parameters[step.params[0].index].tensor.detach().double().cpu()
            for step in steps
            if step.op == "prelu"
        }

        def run(x: torch.Tensor) -> torch.Tensor:
            values: dict[int, torch.Tensor] = {source: x}

            def value(ref: Any) -> Any:
                return values[ref.index].clone() if isinstance(ref, Ref) else ref

            for step in steps:
                if step.op == "prelu":
                    below = values[step.parents[0]]
                    slope = slopes[step.index].mean()
                    values[step.index] = torch.where(below > 0, below, slope * below)
                elif step.op in _CASTS:
                    values[step.index] = values[step.parents[0]]
                elif step.function is None:  # a number that the model holds as a tensor
                    values[step.index] = torch.tensor(step.mean_square).sqrt()
                else:
                    args, kwargs = map_tensors(value, (step.args, step.kwargs), value)
                    values[step.index] = step.function(*args, **kwargs)
            return values[index]

        return run

    def _between(self, index: int) -> list[int]:
        """The values between a value and its source, itself included, in order."""
        source, passed, left = self.source[index], set(), [index]
        while left:
            current = left.pop()
            if current != source and current not in passed:
                passed.add(current)
                left += self._nodes[current].parents
        return sorted(passed)

    def moments(self, index: int, q: float) -> Moments | None:
        """The moments of the function over an input of mean square q; None where it has none."""
        return self._measured(self._key(index), self.function(index), q)

    def odd_moments(self, index: int, q: float) -> Moments | None:
        """Those of its odd part, (f(x) − f(−x)) / 2."""
        function = self.function(index)
        return self._measured(
            f"odd {self._key(index)}", lambda x: (function(x) - function(-x)) / 2, q
        )

    def linearity(self, index: int, *, odd: bool = False) -> float:
        """The share of the function (or of its odd part) that is a straight line, from 0 to 1."""
        function = self.function(index)

        def part(x: torch.Tensor) -> torch.Tensor:
            return (function(x) - function(-x)) / 2 if odd else function(x)

        key = f"{'odd ' if odd else ''}{self._key(index)}"
        whole = self._measured(key, part, 1.0)
        # E f(x) x, from the squares of f(x) + x and f(x).
        shifted = self._measured(f"{key} plus x", lambda x: part(x) + x, 1.0)
        if whole is None or shifted is None or whole.second == 0:
            return 0.0
        with_x = (shifted.second - whole.second - 1.0) / 2
        return with_x**2 / whole.second

    def _measured(
        self, key: str, function: Callable[[torch.Tensor], torch.Tensor], q: float
    ) -> Moments | None:
        q = float(f"{q:.5g}")
        if (key, q) not in self._cache:
            try:
                self._cache[key, q] = moments(function, q)
            except ActivationError:
                self._cache[key, q] = None
        return self._cache[key, q]

    def _key(self, index: int) -> str:
        """The same for two values that are computed in the same way."""
        source = self.source[index]
        spellings = {source: "x"}
        lines = []
        for current in self._between(index):
            node = self._nodes[current]
            spellings[current] = f"v{len(spellings)}"

            def spelt(argument: Any, spellings: dict[int, str] = spellings) -> Any:
                if isinstance(argument, Ref):
                    return spellings[argument.index]
                return f"p{argument.index}" if isinstance(argument, ParamUse) else argument

            arguments = map_tensors(spelt, (node.args, node.kwargs), spelt)
            number = node.mean_square if node.op == "constant" else ""
            lines.append(f"{node.op}{arguments}{number}")
        return ";".join(lines)


def _call_name(node: Node) -> str:
    """`leaky_relu(0.2)` for `F.leaky_relu(x, 0.2)`."""
    if node.op == "prelu":
        return "prelu"
    given = [*node.args[1:], *node.kwargs.values()]
    if "tanh" in given and node.op == "gelu":
        return "gelu_tanh"
    numbers = [
        value for value in given if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    cls = _CLASSES.get(node.op)
    if cls is None or not numbers:
        return node.op
    usual = [
        parameter.default
        for parameter in inspect.signature(cls).parameters.values()
        if isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool)
    ]
    same = len(usual) == len(numbers) and all(
        abs(a - b) <= 1e-12 for a, b in zip(usual, numbers, strict=True)
    )
    return node.op if same else f"{node.op}({', '.join(f'{number:g}' for number in numbers)})"
