"""“Tensor moved to the GPU (the CUDA device) for faster computation”: to whatever there is.

`.to("cuda")` fails if there is no such device, and returns a copy: the tensor stays where it was. A
module is moved itself. What nethook records and edits is moved along, or copied back.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

import nethook
from nethook import edits


def main() -> None:
    """Pick a device, move, trace, edit."""
    torch.manual_seed(0)
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    print("device:", device.type)

    model = nn.Sequential(OrderedDict(fc1=nn.Linear(8, 16), relu=nn.ReLU(), fc2=nn.Linear(16, 4)))
    x = torch.randn(3, 8)
    direction = torch.randn(16)  # stays on the CPU
    moved = model.to(device)
    print("a module is moved itself:", moved is model)
    there = x.to(device)
    print("a tensor is copied, if it has to move:", (there is x) == (device.type == "cpu"))

    # Recordings are copied back, so that a long trace does not fill the device's memory.
    with nethook.trace(model, device="cpu") as tape:
        out = model(there)
    print("computed on", out.device.type, "and recorded on", tape["fc2"].output.device.type)

    # Tensors inside edits are moved to the device of the value.
    with nethook.edit(model, outputs={"fc1": edits.steer(direction, strength=2.0)}):
        steered = model(there)
    print("steered by a direction from the CPU:", steered.device.type == device.type)
    print(f"mean change {(steered - out).abs().mean().item():.2f}")


if __name__ == "__main__":
    main()
