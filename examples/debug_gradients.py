"""“Debugging gradient computations during the backward pass”: none, zero, wrong, not finite.

`check_gradients` runs a loss once, and compares its gradients with finite differences;
`print_shapes` and `check_finite` report while the model runs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import nethook


class Square(torch.autograd.Function):
    """x², with a backward that forgot the factor two."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Keep x for backward."""
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """2x would be right."""
        (x,) = ctx.saved_tensors
        return torch.mul(grad, x)


class Broken(nn.Module):
    """Four mistakes that raise no error."""

    def __init__(self) -> None:
        super().__init__()
        self.before_square = nn.Linear(3, 3)
        self.detached = nn.Linear(3, 3)
        self.dead = nn.Linear(3, 3)
        nn.init.constant_(self.dead.bias, -100)
        self.head = nn.Linear(9, 1)

    def forward(self, x: Tensor) -> Any:
        """Three branches and a head."""
        squared = Square.apply(self.before_square(x))  # type: ignore[no-untyped-call]
        parts = [squared, self.detached(x).detach(), self.dead(x).relu()]
        return self.head(torch.cat(parts, 1))


def main() -> None:
    """Check, fix nothing, watch."""
    torch.manual_seed(0)
    model, x = Broken(), torch.randn(4, 3)
    cb = nethook.Callbacks(model)
    report = cb.check_gradients(lambda: model(x).square().mean())
    print(report)
    print("all right:", report.ok)

    print("\nshapes, forward and backward:")
    shapes = nethook.Callbacks(model)
    shapes.print_shapes("*", grads=True)
    with shapes:
        model(x).sum().backward()

    print("\na NaN on its way:")
    finite = nethook.Callbacks(model)
    finite.check_finite("*")
    try:
        with nethook.edit(model, outputs={"dead": torch.log}), finite:
            model(x)
    except nethook.errors.NotFiniteError as error:
        print(error)


if __name__ == "__main__":
    main()
