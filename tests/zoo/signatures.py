"""Inputs that do not come as one positional tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tests.zoo.exhibit import Exhibit, Given

__all__ = ["EXHIBITS"]


class KeywordOnly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, *, x: Tensor, scale: float = 2.0) -> Tensor:
        return self.fc(input=x) * scale


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = KeywordOnly()
        self.fc = nn.Bilinear(4, 4, 2)

    def forward(
        self, x: Tensor, other: Tensor | None = None, *rest: Tensor, **named: Any
    ) -> Tensor:
        assert other is not None
        total = self.fc(x, input2=self.inner(x=other, scale=named["scale"]))
        return total + sum(t.sum() for t in rest) + named["batch"]["bias"]


class AwkwardNames(nn.Module):
    """Its keywords are the names that wrappers like to use for themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(
        self,
        *,
        module: Tensor,
        args: Tensor,
        kwargs: Tensor,
        hook: Tensor,
        output: Tensor,
        name: Tensor,
    ) -> Tensor:
        return self.fc(module + args * kwargs) - hook * output + name


class AwkwardCaller(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.child = AwkwardNames()

    def forward(self, x: Tensor) -> Tensor:
        return self.child(module=x, args=x * 2, kwargs=x * 3, hook=x, output=x * 5, name=x)


class IndexList(nn.Module):
    """Takes a list of plain numbers: no tensor goes in, a graph comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 4)

    def forward(self, words: list[int]) -> Tensor:
        return self.embed(torch.tensor(words))


class NoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(2, 4))
        self.fc = nn.Linear(4, 2)

    def forward(self) -> Tensor:
        return self.fc(self.query)


class FillsCache(nn.Module):
    """Is given an empty dict and list, and puts tensors there: no copy of them has any tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor, cache: dict[str, Tensor], log: list[str]) -> Tensor:
        cache["hidden"] = self.fc(x)
        log.append("filled")
        return cache["hidden"].tanh()


class CachingParent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.child = FillsCache()

    def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        cache: dict[str, Tensor] = {}
        out = self.child(x, cache, log=[])
        return out, cache


class Batch(nn.Module):
    """Takes one nested structure, and changes it."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, batch: dict[str, Any]) -> Tensor:
        x = batch.pop("x")
        batch["seen"] = True
        return self.fc(x) * batch["weights"][0]


class SameThrice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Bilinear(4, 4, 4)

    def forward(self, a: Tensor, b: Tensor, *, c: Tensor) -> Tensor:
        return self.fc(a, b) + c


def _thrice(model: nn.Module, given: Given) -> object:
    x = given.floats(3, 4)
    return model(x, x, c=x)


EXHIBITS = (
    Exhibit(
        "keyword_only",
        "Every input comes by keyword, so hooks without keywords see nothing.",
        KeywordOnly,
        lambda model, given: model(x=given.floats(3, 4)),
    ),
    Exhibit(
        "mixed_inputs",
        "Positional, optional, variadic and nested keyword inputs in one call.",
        Mixed,
        lambda model, given: model(
            given.floats(3, 4),
            given.floats(3, 4),
            given.floats(2),
            given.floats(5),
            scale=0.5,
            batch={"bias": given.floats(2), "ids": [1, 2]},
        ),
    ),
    Exhibit(
        "awkward_keywords",
        "Keywords called module, args, kwargs, hook, output, name.",
        AwkwardCaller,
    ),
    Exhibit(
        "index_list",
        "Plain numbers go in, no tensor does.",
        IndexList,
        lambda model, given: model([1, 0, 5, 1]),
    ),
    Exhibit(
        "no_inputs", "A model that is called with nothing.", NoInputs, lambda model, given: model()
    ),
    Exhibit(
        "nested_input_changed",
        "The model takes a dict and changes it.",
        Batch,
        lambda model, given: model({"x": given.floats(3, 4), "weights": (given.floats(2), None)}),
    ),
    Exhibit(
        "empty_input_filled",
        "An empty dict and an empty list come in and are filled by the forward.",
        CachingParent,
    ),
    Exhibit(
        "same_input_thrice",
        "One tensor comes in through three arguments, its gradient is the sum.",
        SameThrice,
        _thrice,
    ),
)
