"""“Which feature does it?” A dictionary is spliced in; features are read and switched off."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nethook import interp

torch.manual_seed(0)
directions = nn.functional.normalize(torch.randn(12, 8), dim=1)  # 12 features in 8 dimensions


class Dictionary:
    """Knows the directions; anything with encode and decode will do."""

    def encode(self, x: Tensor) -> Tensor:
        """How much of each feature is in a value."""
        return torch.relu(x @ directions.T - 0.3)

    def decode(self, features: Tensor) -> Tensor:
        """The value that features stand for."""
        return features @ directions


readout = nn.Linear(8, 1, bias=False)
model = nn.Sequential(nn.Identity(), readout)
with torch.no_grad():
    readout.weight[0] = directions[7]  # the output reads feature 7
x = 2 * directions[torch.arange(12).repeat(4)]
plain = model(x)

with interp.splice(model, {"0": Dictionary()}, grads=True) as s:
    print("the run is unchanged:", torch.equal(model(x), plain))
    out = model(x)
    out.sum().backward()
    effect = (s["0"].features * s["0"].grad).sum(0)
print("the feature with the largest effect:", int(effect.argmax()))

with interp.splice(model, {"0": Dictionary()}) as s:
    s.ablate("0", unit=7)
    model(x)
    row = 7  # of the input that has this feature
    print(f"output for it: {plain[row].item():.2f}, without the feature {model(x)[row].item():.2f}")
    figure = s["0"].figure()
worth = interp.splice(model, {"0": Dictionary()}).loss_recovered(
    x, lambda out: (out - plain.detach()).square().mean()
)
print(f"loss recovered by the dictionary alone: {worth.recovered:.2f}")
