"""“Or add hooks at mass […] for all linear modules within model”: a class is a pattern.

The notes' loop overwrites its one handle, so the hooks cannot be removed again; and its function
does not know which layer it was called for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

import nethook


def block(width: int) -> nn.Sequential:
    """Two linear layers with a ReLU between them."""
    layers = OrderedDict(up=nn.Linear(width, 2 * width), relu=nn.ReLU())
    layers["down"] = nn.Linear(2 * width, width)
    return nn.Sequential(layers)


def main() -> None:
    """Select by class, by name, by both; then put one function on all of them."""
    torch.manual_seed(0)
    model = nn.Sequential(OrderedDict(first=block(4), second=block(4), head=nn.Linear(4, 2)))

    def show(title: str, found: Iterable[str]) -> None:
        print(f"{title:19}  {', '.join(found)}")

    show("nn.Linear", nethook.select(model, nn.Linear))
    show('"**.down"', nethook.select(model, "**.down"))
    show("nn.Linear, no head", nethook.select(model, nn.Linear, exclude="head"))
    wide = nethook.select(
        model, type=nn.Linear, where=lambda _, layer: layer.get_parameter("weight").shape[0] > 4
    )
    show("more than 4 outputs", wide)

    cb = nethook.Callbacks(model)

    @cb.after(nn.Linear)
    def mean(output: Tensor, site: str) -> None:
        print(f"  {site:12} {output.shape[-1]} outputs, mean {output.mean().item():+.3f}")

    with cb:
        model(torch.randn(16, 4))
    print("called:", sum(cb.firings.values()), "times")
    print("left behind:", nethook.audit(model))
    try:
        nethook.select(model, nn.Conv2d)
    except LookupError as error:
        print(error)


if __name__ == "__main__":
    main()
