"""“Store activations”: the outputs of layers, by name, without a dict and a closure for each.

The notes' hook keeps `output.detach()`, which an in-place layer overwrites, and one value per name,
which a module that is called twice replaces. A tape has neither problem.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import nethook


class SimpleModel(nn.Module):
    """The network of the notes, with one in-place ReLU that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(10, 5)
        self.fc2 = nn.Linear(5, 2)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Any:
        """Two layers, each followed by the ReLU."""
        return self.relu(self.fc2(self.relu(self.fc1(x))))


def main() -> None:
    """Capture with plain hooks, then with nethook."""
    torch.manual_seed(0)
    model, x = SimpleModel(), torch.randn(1, 10)

    kept: dict[str, Tensor] = {}
    handle = model.fc1.register_forward_hook(lambda _, __, output: kept.update(fc1=output.detach()))
    model(x)
    handle.remove()

    with nethook.trace(model, "fc*", nn.ReLU) as tape:
        model(x)
    for name in ("fc1", "fc2"):
        print(f"{name} activation shape:", tape[name].output.shape)
    print("fc1, kept by a plain hook:", [round(v, 2) for v in kept["fc1"][0].tolist()])
    print("fc1, on the tape:         ", [round(v, 2) for v in tape["fc1"].output[0].tolist()])
    print("relu, its two calls:", [tuple(call.output.shape) for call in tape["relu"].calls])
    try:
        print(tape["relu"].output)
    except nethook.errors.SeveralCallsError as error:
        print(error)
    print(tape)


if __name__ == "__main__":
    main()
