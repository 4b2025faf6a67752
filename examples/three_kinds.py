"""“Hooks are called in the order they were registered”: three kinds, their order, their removal.

The notes register each kind with another method and keep a handle for each. Here one object holds
all functions, each names its site, and one call, or the end of a `with`, removes them all.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

import nethook


def main() -> None:
    """Register, run, remove."""
    torch.manual_seed(0)
    model = nn.Sequential(
        OrderedDict(fc1=nn.Linear(10, 5), relu=nn.ReLU(), fc2=nn.Linear(5, 2)),
    )
    x = torch.randn(1, 10)
    cb = nethook.Callbacks(model)

    @cb.before("fc?")
    def before(inputs: nethook.Inputs, site: str) -> None:
        print(f"  before {site}: input {tuple(inputs.args[0].shape)}")

    @cb.after("fc?")
    def after(output: Tensor, site: str) -> None:
        print(f"  after {site}: output {tuple(output.shape)}")

    @cb.after("fc2")
    def second(_: Tensor) -> None:
        print("  after fc2: registered second, called second")

    @cb.after("fc2", priority=1)
    def first(_: Tensor) -> None:
        print("  after fc2: registered last, called first, for its priority")

    @cb.on_grad("fc?")
    def backward(grad: Tensor, site: str) -> None:
        print(f"  gradient of the output of {site}: {tuple(grad.shape)}")

    print("inside the scope")
    with cb:
        model(x).sum().backward()
        hooks = len(nethook.audit(model))
    print(f"hooks on the model: {hooks} inside, {len(nethook.audit(model))} after")
    model(x).sum().backward()  # prints nothing

    print("attached by hand")
    cb.attach()
    model(x)
    cb.remove()
    cb.remove()  # a second time is harmless
    model(x)
    print(f"removed: {nethook.audit(model)}")


if __name__ == "__main__":
    main()
