"""“Why this region?”: targets that are not a class: a part of a segmentation, and a position.

Two networks see pictures with a bright square and a bright disc. One says for every pixel what is
there; explained is what it says inside the square of each picture, a function of the output that
gives one number per row. The other says where the disc is; explained is its column.
"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

from nethook import interp

SIZE = 16
rows, columns = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")


def scenes(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures, masks (square, disc), and the column of the disc's middle."""
    generator = torch.Generator().manual_seed(seed)
    left = torch.randint(1, 4, (count, 2), generator=generator)
    disc = torch.randint(10, 14, (count, 2), generator=generator)
    squares = (
        (rows >= left[:, :1, None]) & (rows < left[:, :1, None] + 4)
        & (columns >= left[:, 1:, None]) & (columns < left[:, 1:, None] + 4)
    )  # fmt: skip
    discs = (rows - disc[:, :1, None]) ** 2 + (columns - disc[:, 1:, None]) ** 2 <= 4
    noise = 0.1 * torch.randn(count, SIZE, SIZE, generator=generator)
    pictures = squares * 0.8 + discs * 1.0 + noise
    return pictures[:, None], torch.stack([squares, discs], 1).float(), disc[:, 1].float()


def fit(model: nn.Module, loss_of: nn.Module, x: Tensor, y: Tensor) -> nn.Module:
    """A few hundred steps."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(120):
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


x, masks, column = scenes(64, 0)
torch.manual_seed(0)
segmenter = fit(
    nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 2, 5, padding=2)),
    nn.BCEWithLogitsLoss(), x, masks,
)  # fmt: skip
where = fit(
    nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU(), nn.Flatten(),
        nn.Linear(128, 1), nn.Flatten(0),
    ),
    nn.MSELoss(), x, column,
)  # fmt: skip

images, parts, true = scenes(8, 1)
square, disc = parts[:, 0], parts[:, 1]


def around(mask: Tensor) -> Tensor:
    """A mask with the pixels that a 9 by 9 window reaches."""
    return nn.functional.max_pool2d(mask[:, None], 9, 1, 4)[:, 0] > 0


def in_square(out: Tensor) -> Tensor:
    """The mean score of “square” inside each picture's own square."""
    return (out[:, 0] * square).sum((1, 2)) / square.sum((1, 2))


result = interp.integrated_gradients(segmenter, images, target=in_square, tol=1e-2)
size = result.summed.abs()
print(f"segmentation: {float((size * around(square)).sum() / size.sum()):.0%} near the square")
print(f"  error {float(result.delta.abs().max()):.0e} of {float(result.score.mean()):.1f}")  # type: ignore[union-attr]
cam = interp.grad_cam(segmenter, images, target=in_square, at="1", method="hires")
inside = cam.maps.abs()
print(f"  map: {float((inside * around(square)).sum() / inside.sum()):.0%} near the square")

found = interp.op_lift(where, images)  # one number per row: no target has to be named
print(f"regression: off by {float((found.score - true).abs().mean()):.1f} columns")
size = found.summed.abs()
more = float(size[disc > 0].mean() / size[(disc + square) == 0].mean())
print(f"  a pixel of the disc matters {more:.0f} times as much as one of the background")
with tempfile.TemporaryDirectory() as folder:
    result.figure(row=0).write_html(Path(folder) / "square.html")
    interp.overlay(images, found, row=0).write_html(Path(folder) / "disc.html")
    print("written:", ", ".join(sorted(path.name for path in Path(folder).iterdir())))
