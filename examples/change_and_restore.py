"""“Manipulating the parameters of a model, such as restoring them to their original values”.

Inside `preserve` anything may happen to the weights; afterwards they are the same objects with the
same bits, even after an error.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

import nethook
from nethook import edits


def main() -> None:
    """Change by hand, by an optimizer, by an edit; restore each time."""
    torch.manual_seed(0)
    model = nn.Sequential(OrderedDict(fc1=nn.Linear(4, 8), relu=nn.ReLU(), fc2=nn.Linear(8, 2)))
    x = torch.randn(5, 4)
    plain = model(x)
    before = {name: each.clone() for name, each in nethook.select(model, params=True).items()}

    def same(out: Tensor | None = None) -> bool:
        now = nethook.select(model, params=True)
        bits = all(torch.equal(now[name], before[name]) for name in before)
        return bits and torch.equal(model(x) if out is None else out, plain)

    with nethook.preserve(model, "fc1"):
        nethook.get_parameter(model, "fc1.weight").data.mul_(2)
        nethook.set_parameter(model, "fc1.bias", torch.zeros(8))
        print("by hand: changed", not same(), end=", ")
    print("back", same())

    with nethook.preserve(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        model(x).square().mean().backward()
        optimizer.step()
        print("a step of training: changed", not same(), end=", ")
    print("back", same())

    try:
        with nethook.preserve(model):
            nethook.set_parameter(model, "fc2.weight", 0.0)
            raise ValueError("something went wrong")
    except ValueError:
        print("after an error: back", same())

    loss = model(x).sum()  # a graph from before the change
    u, v = torch.randn(8), torch.randn(4)
    with nethook.edit(model, params={"fc1.weight": edits.add_low_rank(u, v)}):
        out = model(x)
        changed = nethook.get_parameter(model, "fc1.weight") - before["fc1.weight"]
        written = torch.allclose(changed, torch.outer(u, v), atol=1e-6)
        print("a change of rank one, as data: changed", not same(out), end=", ")
    print("back", same(), "and it was W + u vᵀ:", written)

    loss.backward()
    print("backward through a graph from before the change works")


if __name__ == "__main__":
    main()
