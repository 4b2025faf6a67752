"""“This is adding a hook to the initial input and final output”: the model itself is a site.

Its address is the empty string. What goes in and what comes out can be read and changed, whether
it is passed by position or by name.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import nethook
from nethook import edits


class Classifier(nn.Module):
    """Takes a batch and a temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Tensor, temperature: float = 1.0) -> Tensor:
        """Logits, divided by the temperature."""
        return torch.div(self.fc(x), temperature)


def main() -> None:
    """Read input and output, then change both."""
    torch.manual_seed(0)
    model, x = Classifier(), torch.randn(2, 4)

    with nethook.trace(model, "", inputs=True) as tape:
        logits = model(x, temperature=2.0)
    call = tape[""]
    print(f"initial input: {tuple(call.input.shape)}, and by name {call.kwargs}")
    print(f"final output:  {tuple(call.output.shape)}")
    print(f"the same values: {torch.equal(call.output, logits)}")

    scaled = {"": {"[0]": lambda batch: (batch - batch.mean()) / batch.std()}}
    with nethook.edit(model, inputs=scaled, outputs={"": lambda out: out.softmax(-1)}):
        shares = model(x)
    by_hand = model((x - x.mean()) / x.std()).softmax(-1)
    print(f"scaled on the way in, softmax on the way out: {torch.allclose(shares, by_hand)}")
    print(f"rows sum to one: {[round(row.sum().item(), 4) for row in shares]}")

    with nethook.edit(model, inputs={"": {'["temperature"]': lambda old: old / 10}}):
        sharp = model(x, temperature=2.0)
    print(f"the temperature divided by ten: {torch.allclose(sharp, logits * 10)}")

    with nethook.edit(model, outputs={"": edits.clamp(-0.2, 0.2)}):
        print(f"clamped: {model(x).abs().max().item():.1f} at most")


if __name__ == "__main__":
    main()
