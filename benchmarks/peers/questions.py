"""What a tool that reads outputs gets right.

Are the values those of the model; is the model's output; how many calls are seen of a layer that a
forward calls twice; is a value kept that is overwritten in place afterwards; what is found in a
compiled model; what is left on the model afterwards, and on torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from peers.turns import first_line

Captured = dict[str, list[Tensor]]
Capture = Callable[[nn.Module, Sequence[str], Tensor], tuple[Captured, Any]]
"""From a model, names and its input: the values of every call that is seen, and the output."""


class CallsTwice(nn.Module):
    """One layer, called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Twice the second layer."""
        twice: Tensor = self.again(self.again(self.first(x)))
        return twice


class Overwrites(nn.Module):
    """A layer whose output is overwritten in place before the forward ends."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu = nn.Linear(4, 4), nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """ReLU in the memory of the first layer's output."""
        after: Tensor = self.relu(self.first(x))
        return after


def same(mine: Tensor, other: Tensor) -> bool:
    """Bit for bit."""
    return mine.shape == other.shape and bool(torch.equal(mine, other))


def closeness(mine: Tensor, other: Tensor) -> str:
    """In words."""
    if same(mine, other):
        return "bit-identical"
    if mine.shape != other.shape:
        return f"wrong: shape {tuple(mine.shape)} instead of {tuple(other.shape)}"
    return f"differs by up to {float((mine - other).abs().max()):.1g}"


def asked(question: Callable[[], str]) -> str:
    """The answer, or the error."""
    try:
        with torch.no_grad():
            return question()
    except Exception as error:
        return f"error: {first_line(error)}"


def two_calls(capture: Capture) -> str:
    """How many calls are seen of a layer that is called twice."""
    torch.manual_seed(0)
    model, x = CallsTwice().eval(), torch.randn(2, 4)
    once = model.again(model.first(x))
    both = [once, model.again(once)]
    kept = capture(model, ["again"], x)[0]["again"]
    if len(kept) == 2 and all(map(same, kept, both)):
        return "both calls"
    if len(kept) == 1:
        which = [same(kept[0], value) for value in both]
        if any(which):
            return f"only the {('first', 'last')[which.index(True)]}, without a word"
    return f"wrong: {len(kept)} values"


def overwritten(capture: Capture) -> str:
    """Whether the value is that of the layer, or what came to lie in its memory."""
    torch.manual_seed(0)
    model, x = Overwrites().eval(), torch.randn(2, 4)
    right = model.first(x).clone()
    kept = capture(model, ["first"], x)[0]["first"][0]
    if same(kept, right):
        return "right"
    return "wrong, without a word: the ReLU's values" if same(kept, right.relu()) else "wrong"


def compiled(capture: Capture) -> str:
    """What is found in a compiled model that has run before."""
    torch.manual_seed(0)
    model, x = CallsTwice().eval(), torch.randn(2, 4)
    right = model.first(x)
    fast: Any = torch.compile(model, backend="eager")
    fast(x)
    with contextlib.suppress(KeyError):
        kept = capture(fast, ["first"], x)[0].get("first", [])
        if kept and same(kept[0], right):
            return "right"
        if kept:
            return "wrong"
    try:
        kept = capture(fast, ["_orig_mod.first"], x)[0].get("_orig_mod.first", [])
    except KeyError:
        kept = []
    if not kept:
        return "nothing is captured, without a word"
    return "right" if same(kept[0], right) else "wrong"


def left_behind(model: nn.Module, before: Mapping[str, object]) -> str:
    """Hooks and replaced methods on a model, and functions of torch that are others now."""
    tables = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    modules = list(model.modules())
    hooks = sum(len(getattr(module, table)) for module in modules for table in tables)
    replaced = sum("forward" in vars(module) for module in modules)
    changed = sum(value is not getattr(torch, name) for name, value in before.items())
    found = [
        f"{count} {what}"
        for count, what in (
            (hooks, "hooks"),
            (replaced, "replaced forwards"),
            (changed, "wrapped functions of torch"),
        )
        if count
    ]
    return ", ".join(found) or "nothing"
