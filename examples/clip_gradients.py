"""“Gradient clipping: Modify gradients during backpropagation”: with a hook that does clip.

The notes' hook writes to `grad_output` after the layer has used it: nothing is clipped, and other
gradients that share its memory are corrupted. nethook's edits return new tensors.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

import nethook
from nethook import edits


def network() -> nn.Sequential:
    """The same initial weights each time."""
    torch.manual_seed(0)
    layers = OrderedDict(fc1=nn.Linear(4, 16), tanh=nn.Tanh(), fc2=nn.Linear(16, 1))
    return nn.Sequential(layers)


def norms(model: nn.Module) -> str:
    """The norm of each parameter's gradient, and of all together."""
    grads = [each.grad for each in model.parameters() if each.grad is not None]
    values = [grad.norm().item() for grad in grads]
    values.append(nn.utils.get_total_norm(grads).item())
    return "".join(f"{value:9.3f}" for value in values)


def main() -> None:
    """Clip the parameters together, one by one, or the gradients between layers."""
    torch.manual_seed(1)
    x = torch.randn(32, 4)
    names = ("fc1.w", "fc1.b", "fc2.w", "fc2.b", "all")
    print(f"{'norms of gradients':24}" + "".join(f"{name:>9}" for name in names))

    model = network()
    (100 * model(x).square().mean()).backward()
    print("not clipped             " + norms(model))

    model = network()
    (100 * model(x).square().mean()).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    print("torch, after backward   " + norms(model))

    model = network()
    cb = nethook.Callbacks(model)
    cb.clip_grad_norm("**", max_norm=1.0)  # the same, at the end of each backward
    with cb:
        (100 * model(x).square().mean()).backward()
    print("cb.clip_grad_norm       " + norms(model))

    model = network()
    with nethook.edit(model, param_grads={"**": edits.clip_norm(1.0)}):
        (100 * model(x).square().mean()).backward()
    print("each parameter alone    " + norms(model))

    model = network()
    with nethook.edit(model, grads={"tanh": edits.clip_norm(1.0)}):
        (100 * model(x).square().mean()).backward()
    print("what tanh gets back     " + norms(model))


if __name__ == "__main__":
    main()
