"""Modules that return what they were given, or what they own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.zoo.exhibit import Exhibit, Given

__all__ = ["EXHIBITS"]


class OwnParameter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self) -> Tensor:
        return self.weight


class OwnBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(4.0))
        self.table: Tensor

    def forward(self) -> Tensor:
        return self.table


class OwnParameterView(OwnParameter):
    def forward(self) -> Tensor:
        return self.weight.view(2, 2)


class Adds(nn.Module):
    """Adds what a source without inputs returns."""

    def __init__(self, source: nn.Module) -> None:
        super().__init__()
        self.source = source
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x) + self.source().reshape(4)


class BufferWritten(nn.Module):
    """Hands out its buffer, which the caller then writes."""

    def __init__(self) -> None:
        super().__init__()
        self.source = OwnBuffer()

    def forward(self, x: Tensor) -> Tensor:
        table = self.source()
        table += x.detach().mean(0)
        return x * table.clone()


class Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return x, {"same": x}


class Unpacks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.pair = Pair()

    def forward(self, x: Tensor) -> Tensor:
        first, rest = self.pair(self.fc(x))
        assert first is rest["same"]
        return first * rest["same"]


class Cached(nn.Module):
    """Computes once and then returns the same tensor of the same graph."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.kept: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.kept is None:
            self.kept = self.fc(x)
        return self.kept


class AsksTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cached = Cached()

    def forward(self, x: Tensor) -> Tensor:
        self.cached.kept = None
        return self.cached(x) * self.cached(x).sigmoid()


class Detached(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.detach()


class StraightThrough(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.cut = Detached()

    def forward(self, x: Tensor) -> Tensor:
        y = self.fc(x)
        return y + self.cut(y.round() - y)


def _same_leaf_twice(model: nn.Module, given: Given) -> object:
    # Two forwards with one leaf: what was hung on it in the first must not fire in the second.
    x = given.floats(3, 4)
    return model(x), model(x)


EXHIBITS = (
    Exhibit(
        "identity_of_leaf",
        "Identity returns the caller's leaf itself, twice.",
        lambda: nn.Identity(),
        _same_leaf_twice,
    ),
    Exhibit(
        "identity_of_nonleaf",
        "Several Identities return one and the same inner tensor.",
        lambda: nn.Sequential(nn.Linear(4, 4), nn.Identity(), nn.Identity(), nn.Tanh()),
    ),
    Exhibit(
        "dropout_in_eval",
        "Dropout in eval mode returns its input object.",
        lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2), nn.Dropout()),
        train=False,
    ),
    Exhibit(
        "own_parameter",
        "A module without inputs returns its parameter.",
        lambda: Adds(OwnParameter()),
    ),
    Exhibit(
        "own_parameter_view",
        "A module returns a view of its parameter.",
        lambda: Adds(OwnParameterView()),
    ),
    Exhibit("own_buffer", "A module returns its buffer.", lambda: Adds(OwnBuffer())),
    Exhibit(
        "own_buffer_written", "The caller writes the buffer that it was handed.", BufferWritten
    ),
    Exhibit("input_twice_in_output", "The output holds the input object twice.", Unpacks),
    Exhibit("cached_output", "A module returns the tensor of an earlier call again.", AsksTwice),
    Exhibit(
        "straight_through", "A module returns its input cut off from the graph.", StraightThrough
    ),
)
