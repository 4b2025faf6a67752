"""“Implementing custom loss functions or regularization techniques”: a loss from inner layers.

An activation that was detached, as the notes' hook keeps it, trains nothing. A penalty is collected
with its graph, call by call, and added to the loss; the model is not changed.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F

import nethook


def train(weight: float) -> tuple[float, float, float]:
    """Train with a penalty on active units: loss, fraction of active units, gradient of fc1."""
    torch.manual_seed(0)
    model = nn.Sequential(
        OrderedDict(fc1=nn.Linear(8, 64), relu1=nn.ReLU(), fc2=nn.Linear(64, 64), relu2=nn.ReLU()),
    )
    model.append(nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    cb = nethook.Callbacks(model)
    cb.penalty("relu*", lambda out: out.abs().mean(), weight=weight)
    with cb:
        for _ in range(150):
            x = torch.randn(64, 8)
            optimizer.zero_grad()
            fit = F.mse_loss(model(x).squeeze(1), x[:, 0] * x[:, 1])
            (fit + cb.loss()).backward()
            optimizer.step()

    with torch.no_grad(), nethook.trace(model, "relu*") as tape:
        model(torch.randn(256, 8))
    active = torch.cat([(tape[name].output > 0).float().flatten() for name in tape]).mean()

    # Only the penalty, which reaches the layers before it.
    optimizer.zero_grad()
    with cb:
        model(torch.randn(64, 8))
        cb.loss().backward()
    grad = nethook.get_parameter(model, "fc1.weight").grad
    return fit.item(), float(active), 0.0 if grad is None else float(grad.norm())


def main() -> None:
    """Without the penalty, and with increasing weights of it."""
    print("weight   loss   units active   gradient of fc1 from the penalty")
    for weight in (0.0, 0.1, 1.0):
        fit, active, grad = train(weight)
        print(f"{weight:6}  {fit:5.2f}   {active:12.0%}   {grad:.4f}")


if __name__ == "__main__":
    main()
