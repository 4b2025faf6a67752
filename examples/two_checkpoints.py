"""“Compare two checkpoints”: which layers make the difference?

A network is saved before and after fine-tuning. Its layers differ everywhere; which of them make it
better? For each layer the output of the later checkpoint is put into the earlier one, on the same
inputs, and the loss is measured. (`interp.take` takes values of the same model on other inputs;
values of another model are recorded with `trace` and put in by a function.)
"""

import copy
import tempfile
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn

import nethook
from nethook import interp

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, :2].prod(1) > 0).long()  # a quadrant: a linear network cannot tell

model = nn.Sequential(
    nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(),
    nn.Linear(32, 2),
)  # fmt: skip


def train(steps: int, parameters: Iterable[nn.Parameter]) -> None:
    """Trains some parameters."""
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    for _ in range(steps):
        batch = torch.randint(0, len(x), (64,))
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(20, model.parameters())
early = copy.deepcopy(model)
train(400, model[2].parameters())  # fine-tuning of one layer: that is the truth to be found
late = model

test, target = x[:64], y[:64]
names = ["0", "2", "4"]
with torch.no_grad(), nethook.trace(late, *names) as tape:
    late(test)


def losses(out: torch.Tensor) -> torch.Tensor:
    """One number per row."""
    return nn.functional.cross_entropy(out, target, reduction="none")


def late_value(_: torch.Tensor, site: str) -> torch.Tensor:
    """What the later checkpoint has there."""
    output: torch.Tensor = tape[site].output
    return output


result = interp.sweep(early, test, at=names, change=late_value, metric=losses)
with torch.no_grad():
    gain = (losses(late(test)) - losses(early(test))).mean()
print(result)
print(f"the whole difference: {gain:.3f}")
for name, effect in zip(names, result.mean[:, 0], strict=True):
    print(f"layer {name}: {abs(float(effect / gain)):.0%} of it")
print("The first layer is the same in both:", bool((result.effect[0] == 0).all()))

with tempfile.TemporaryDirectory() as folder:
    result.figure().write_html(Path(folder) / "layers.html")
    print("written:", ", ".join(path.name for path in Path(folder).iterdir()))
