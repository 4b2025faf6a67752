"""“`hook(grad) -> Tensor or None`”: gradients of tensors, read and replaced.

A hook on a tensor is called with the gradient of this backward pass, not with what `.grad` holds.
nethook attaches it to outputs, inputs and parameters by name, and refuses what would corrupt
gradients silently.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

import nethook


def main() -> None:
    """Observe, replace, and see what is refused."""
    torch.manual_seed(0)
    model = nn.Sequential(OrderedDict(fc1=nn.Linear(3, 4), tanh=nn.Tanh(), fc2=nn.Linear(4, 1)))
    x = torch.randn(8, 3)

    with nethook.trace(model, grads=True, param_grads=True) as tape:
        model(x).sum().backward()
        model(x).sum().backward()
    passes = tape.params["fc2.bias"].grads
    print("fc2.bias, each backward:", [grad.item() for grad in passes])
    print("fc2.bias.grad, the sum: ", nethook.get_parameter(model, "fc2.bias").grad)
    inside = tape["tanh"].calls[0].grad
    print("a tensor inside the graph, which keeps no .grad:", tuple(inside.shape))

    cb = nethook.Callbacks(model)

    @cb.on_grad("tanh")
    def double(grad: Tensor) -> Tensor:
        return grad * 2

    @cb.on_param_grad("fc2.*")
    def look(grad: Tensor, site: str) -> None:  # None: no change
        print(f"  {site}: {tuple(grad.shape)}")

    model.zero_grad()
    with cb:
        model(x).sum().backward()
    before = tape.params["fc1.weight"].grads[0]
    after = nethook.get_parameter(model, "fc1.weight").grad
    doubled = after is not None and torch.allclose(after, 2 * before)
    print("what fc1 gets is doubled:", doubled)

    print("refused:")
    wrong = {"another type": lambda grad: grad.double(), "another shape": lambda grad: grad[0]}
    for what, function in wrong.items():
        try:
            with nethook.edit(model, grads={"tanh": function}):
                model(x).sum().backward()
        except nethook.errors.EditError:
            print(f"  {what}")

    def write(grad: Tensor) -> None:
        grad.mul_(2)

    try:
        with nethook.edit(model, grads={"tanh": write}):
            model(x).sum().backward()
    except nethook.errors.InPlaceEditError:
        print("  written in place")


if __name__ == "__main__":
    main()
