"""Containers of modules and of parameters, and names that are hard to write down."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.zoo.exhibit import Exhibit

__all__ = ["EXHIBITS"]


class Dicts(nn.Module):
    def __init__(self, *keys: str) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({key: nn.Linear(4, 4) for key in keys})

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {key: head(x) for key, head in self.heads.items()}


class Lists(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)])
        self.unused = nn.ModuleList()

    def forward(self, x: Tensor) -> Tensor:
        for layer in reversed(self.layers):
            x = layer(x)
        return x


class ParameterContainers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.listed = nn.ParameterList([torch.randn(4), torch.randn(4), 2.0])
        self.named = nn.ParameterDict({"scale": torch.randn(4), "a-b": torch.randn(4)})

    def forward(self, x: Tensor) -> Tensor:
        for weight in self.listed:
            x = x * weight
        return x * self.named["scale"] + self.named["a-b"]


class Slices(nn.Module):
    """Slicing makes a new container around the same layers at every call."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        return self.body[:2](x) + self.body[2:](x)


class Unnamed(nn.Module):
    """Layers in an ordinary list, which no walk over the tree finds."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = [nn.Linear(4, 4)]
        self.seen = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.seen(self.hidden[0](x))


class WrapperNames(nn.Module):
    """An honest child with the name that wrappers give to theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.module = nn.Linear(4, 4)
        self._orig_mod = nn.Sequential(nn.Linear(4, 4))
        self.add_module("parametrizations_", nn.ModuleDict({"weight": nn.Linear(4, 4)}))
        self.original0 = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self._orig_mod(self.module(x))
        return self.original0(self.get_submodule("parametrizations_.weight")(x))


def _deep(levels: int) -> nn.Module:
    model: nn.Module = nn.Linear(4, 4)
    for _ in range(levels):
        model = nn.Sequential(model)
    return model


EXHIBITS = (
    Exhibit("module_dict", "ModuleDict is never called, its values are.", lambda: Dicts("a", "b")),
    Exhibit("module_list", "ModuleList run backwards, beside an empty one.", Lists),
    Exhibit(
        "parameter_containers", "Parameters in lists and dicts of their own.", ParameterContainers
    ),
    Exhibit("sliced_sequential", "Slicing builds new containers inside of the forward.", Slices),
    Exhibit("hidden_modules", "Modules in a plain list are outside of the tree.", Unnamed),
    Exhibit(
        "odd_names",
        "Keys that patterns would take for their own signs.",
        lambda: Dicts("*", "**", "[", "a[0]", "/", "#1", "{a,b}", "?", "\\", "!x", " "),
    ),
    Exhibit(
        "unicode_names",
        "Keys with spaces, line ends, other alphabets, combining signs.",
        lambda: Dicts("with space", "line\nend", "größe", "层", "e\u0301", "\u00e9", "🦒"),
    ),
    Exhibit(
        "names_like_numbers",
        "Keys that look like indices, keywords, private names.",
        lambda: Dicts("-1", "007", "None", "class", "__dunder__", "weight", "output"),
    ),
    Exhibit(
        "names_of_wrappers",
        "Children called module and _orig_mod without any wrapper.",
        WrapperNames,
    ),
    Exhibit("deep_nesting", "Eighty containers, one inside the other.", lambda: _deep(80)),
    Exhibit(
        "wide",
        "Two hundred layers side by side.",
        lambda: nn.Sequential(*(nn.Linear(4, 4) if i % 50 == 0 else nn.Tanh() for i in range(200))),
    ),
)
