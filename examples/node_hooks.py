"""“Autograd Node gradient hooks via Node.register_hook”: the graph, and hooks on its nodes.

A node stands for one operation of the forward, and runs in backward. A hook on it sees the
gradients of its inputs and outputs; it need not return anything. nethook finds the nodes by the
address of what made them, and refuses what would go wrong later.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

import nethook

Gradients = tuple[Tensor | None, ...]


def main() -> None:
    """Show the graph, then read and change gradients in backward."""
    torch.manual_seed(0)
    model = nn.Sequential(OrderedDict(fc1=nn.Linear(3, 4), tanh=nn.Tanh(), fc2=nn.Linear(4, 1)))
    x = torch.randn(8, 3)

    with nethook.trace(model, nodes=True) as tape:
        loss = model(x).sum()
    print(nethook.autograd_graph(loss, tape=tape))
    print("\nthe output of tanh was made by", tape["tanh"].node.name())

    seen: list[int] = []
    tape["tanh"].node.register_hook(lambda *grads: seen.append(len(grads)))
    loss.backward()
    print("a hook of torch's on it returned nothing and was called:", len(seen) == 1)
    plain = gradient_at_fc1(model)

    cb = nethook.Callbacks(model)

    @cb.on_node("*")
    def look(grad_inputs: Gradients, grad_outputs: Gradients, site: str) -> None:
        made = [tuple(grad.shape) for grad in grad_outputs if grad is not None]
        given = [None if grad is None else tuple(grad.shape) for grad in grad_inputs]
        print(f"  {site}: {made} to {given}")  # None: the data need no gradient

    @cb.on_node("tanh", before=True)
    def double(grad_outputs: Gradients) -> Tensor | None:
        (grad,) = grad_outputs
        return None if grad is None else grad * 2

    model.zero_grad()
    print("shapes of gradients, of what each node made and of what it was given:")
    with cb:
        model(x).sum().backward()
    print("what fc1 gets is doubled:", torch.allclose(gradient_at_fc1(model), 2 * plain))

    wrong = nethook.Callbacks(model)
    wrong.on_node("fc2")(lambda grad_inputs, _: grad_inputs[:1])
    try:
        with wrong:
            model(x).sum().backward()
    except nethook.errors.EditError as error:
        print("refused:", str(error).partition(",")[0])
    print("left behind:", nethook.audit(model))


def gradient_at_fc1(model: nn.Module) -> Tensor:
    """The gradient that fc1's weight has now."""
    grad = nethook.get_parameter(model, "fc1.weight").grad
    assert grad is not None
    return grad.clone()


if __name__ == "__main__":
    main()
