"""“Allowing for the formation of an organized tree architecture”: parameters, shown as a tree.

A parameter is registered where it is assigned; a module brings its own along. A plain tensor and a
Python list of layers are not registered, and a tied weight counts once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import nethook


class Net(nn.Module):
    """Everything that can be assigned."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4))
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.body[0].weight  # type: ignore[assignment]
        self.forgotten = torch.ones(1, requires_grad=True)  # a tensor, not a parameter
        self.hidden = [nn.Linear(4, 4)]  # a list, not an nn.ModuleList


def lines(tree: dict[str, Any], indent: str = "") -> list[str]:
    """The lines of a nested dict whose leaves are text."""
    found = []
    for number, (name, inner) in enumerate(tree.items()):
        last = number == len(tree) - 1
        text = f": {inner}" if isinstance(inner, str) else ""
        found.append(f"{indent}{'└── ' if last else '├── '}{name}{text}")
        if isinstance(inner, dict):
            found += lines(inner, indent + ("    " if last else "│   "))
    return found


def describe(tensor: Tensor) -> str:
    """Its shape, and whether it is learned."""
    kind = "" if isinstance(tensor, nn.Parameter) else ", buffer"
    return f"{tuple(tensor.shape)}{kind}"


def main() -> None:
    """Names to a tree, and what is not in it."""
    model = Net()
    tree: dict[str, Any] = {}
    for name, tensor in nethook.select(model, params=True).items():
        *parents, leaf = name.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[leaf] = describe(tensor)
    print("Net\n" + "\n".join(lines(tree)))
    print("\nassigned as a parameter:", list(model._parameters))
    print("assigned as a module:   ", list(model._modules))
    print("not registered:          forgotten, hidden")
    weight = nethook.get_parameter(model, "tied.weight")
    print("tied.weight is body.0.weight:", weight is model.get_parameter("body.0.weight"))
    biases = nethook.select(model, "**.bias", params=True)
    print("every bias:", list(biases))


if __name__ == "__main__":
    main()
