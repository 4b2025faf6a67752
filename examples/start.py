"""“The gain … helps ensure that the network starts with weights that are well-suited”: how far.

    leaky_relu_gain = nn.init.calculate_gain('leaky_relu', negative_slope=0.2)
    def initialize_layer(layer, activation='relu'): ...

In torch the first is a TypeError, the list ends before GELU, and one gain per layer is not enough
for a deep network. Here all three work: by hand, exactly, and for a whole model.
"""

from __future__ import annotations

import torch
from torch import nn

from nethook.init import apply_, calculate_gain, calibrate_, gain, initialize_layer, plan, verify

torch.manual_seed(0)

print("the notes' list, as torch has it and as it should be:")
for name in ("linear", "tanh", "relu", "selu", "sigmoid", "gelu"):
    print(f"  {name:8}{calculate_gain(name):8.4f}{calculate_gain(name, convention='exact'):8.4f}")
print(f"leaky_relu, slope 0.2: {calculate_gain('leaky_relu', negative_slope=0.2):.4f}")
print(f"a function of your own: {gain(lambda x: x * torch.sigmoid(1.702 * x)):.4f}")

layer = initialize_layer(nn.Linear(100, 100), activation="relu")
print(f"a layer, Xavier with gain √2: std {layer.weight.std():.3f}, bias {layer.bias.any().item()}")

layers: list[nn.Module] = []
for _ in range(29):
    layers += [nn.Linear(64, 64), nn.SiLU()]
model = nn.Sequential(*layers, nn.Linear(64, 10))
x = torch.randn(128, 64)


def tell(how: str) -> None:
    """The last layer's scale, the first layer's gradient, and whether inputs stay different."""
    report = verify(model, x)
    last = report.rows[-1]
    print(
        f"{how:22}scale {last.forward:.1e}  gradient {report.gradient_ratio:.1e}  "
        f"cosine {last.cosine:5.2f}  ok: {report.ok(0.5, 2.0)}"
    )


print("thirty layers of SiLU: the last scale, first gradient, cosine of two inputs")
tell("  as torch starts it")
for each in model:
    if isinstance(each, nn.Linear):
        initialize_layer(each, "silu")
tell("  every layer by hand")
start = plan(model, x)
apply_(model, start, generator=0)
calibrate_(model, x, plan=start)
tell("  planned, calibrated")
