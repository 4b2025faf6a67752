"""“Layer output modification: Change outputs without modifying the layer”.

The same notes say that forward hooks cannot do that. They can; and an edit that never applies, or
writes in place, or names no layer, is an error instead of a surprise.
"""

from __future__ import annotations

from collections import OrderedDict
from textwrap import shorten

import torch
from torch import Tensor, nn

import nethook
from nethook import edits


def main() -> None:
    """Edits as data, as functions, in sequence; and the mistakes."""
    torch.manual_seed(0)
    model = nn.Sequential(OrderedDict(fc1=nn.Linear(4, 6), relu=nn.ReLU(), fc2=nn.Linear(6, 2)))
    x = torch.randn(3, 4)
    fc1, relu, fc2 = model

    with nethook.edit(model, outputs={"fc1": edits.scale(0.5)}):
        out = model(x)
    print("halved:", torch.equal(out, fc2(relu(fc1(x) * 0.5))))

    with nethook.edit(model, outputs={"fc1": [edits.clamp(min=0), edits.zero_units([0, 3])]}):
        out = model(x)
    hidden = relu(fc1(x)).index_fill(1, torch.tensor([0, 3]), 0)
    print("clamped, then without units 0 and 3:", torch.equal(out, fc2(hidden)))

    def centred(output: Tensor) -> Tensor:
        return output - output.mean(0)

    with nethook.edit(model, outputs={nn.Linear: centred}):
        out = model(x)
    print("both layers centred:", bool((out.mean(0).abs() < 1e-6).all()))

    with nethook.trace(model, "relu") as other:
        model(torch.randn(3, 4))
    with nethook.edit(model, outputs={"relu": edits.patch(other["relu"].output)}):
        out = model(x)
    print("patched from another run:", torch.equal(out, fc2(other["relu"].output)))

    def write(output: Tensor) -> None:
        output.mul_(2)

    print("mistakes:")
    for outputs in ({"fc3": edits.zero()}, {"fc1": write}):
        try:
            with nethook.edit(model, outputs=outputs):
                model(x)
        except nethook.errors.NethookError as error:
            print(f"  {type(error).__name__}: {shorten(str(error), 58)}")
    try:
        with nethook.edit(model, outputs={"fc1": edits.zero()}):
            pass  # the model does not run
    except nethook.errors.UnfiredError as error:
        print(f"  {type(error).__name__}: {shorten(str(error), 58)}")


if __name__ == "__main__":
    main()
