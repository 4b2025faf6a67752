"""“Occlude each part of the image”: which pixels does a CNN need?

Pictures of the digit 3 carry a watermark: a bright pixel in a corner. A network that learns from
such data is right for the wrong reason. Covering every pixel in turn shows it, and the twin that
was trained without the watermark shows what it should look like.
"""

import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn

from nethook import edits, interp

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
labels = torch.tensor(digits.target)
marked = images.clone()
marked[labels == 3, 0, 0, 7] = 3.0
threes = (labels == 3).nonzero().flatten()[:32]


def trained(data: torch.Tensor) -> nn.Module:
    """A small CNN, a few epochs."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(16 * 36, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(6):
        for batch in torch.randperm(len(data)).split(64):
            loss = nn.functional.cross_entropy(model(data[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def occluded(model: nn.Module, data: torch.Tensor, name: str) -> interp.Sweep:
    """How much better 3 does than the other digits, with one pixel covered at a time."""
    result = interp.sweep(
        model, data[threes], over="pixels", change=edits.zero(),
        metric=lambda out: out.log_softmax(-1)[:, 3],
    )  # fmt: skip
    most = result.top(1)[0]
    effects = result.mean.abs().flatten()
    interval = f"{most.low:.2f} … {most.high:.2f}"
    print(f"{name}: pixel ({most.cell}) matters most, {most.mean:.2f} ({interval})")
    print(f"  its share of all effects: {float(effects.max() / effects.sum()):.0%}")
    print(f"  {len(result.cells)} cells, exact: {not result.whole}")
    return result


with_mark = occluded(trained(marked), marked, "with a watermark")
without = occluded(trained(images), images, "without")
with tempfile.TemporaryDirectory() as folder:
    for name, result in (("with", with_mark), ("without", without)):
        result.figure().write_html(Path(folder) / f"{name}.html")
    print("written:", ", ".join(sorted(path.name for path in Path(folder).iterdir())))
